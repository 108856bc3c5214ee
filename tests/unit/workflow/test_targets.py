"""A slip in what Snakemake is asked for is one line with the nearest names; whatever a rule makes passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.workflow import targets
from fedbench.workflow.inputs import Inputs

ROOT = Path(__file__).parents[3]
CELL = "results/cells/demo/localscgdam/Digits/p4_imratio0.1"
RULES = ["all", "train", "page"]


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return Inputs(configuration.load_config())


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    "slip, answer",
    [
        ("results/cells/demo/foo.json", "results/cells/demo/localscgdam/"),
        (f"{CELL}/CoDAA.json", f"nearest: {CELL}/CoDA.json"),
        (f"{CELL.replace('demo', 'reduced')}/CoDA.json", "--config scale=reduced has it"),
        ("raport.html", "Nearest: report.html"),
        ("tables/tabel1.tex", "unknown table of localscgdam 'tabel1'. Did you mean 'table1'?"),
        ("figures/climb/figur1.pdf", "unknown figure of climb 'figur1'. Did you mean 'figure1'?"),
        ("tables/table1.text", "tables/table1.tex"),
        ("tabels/table1.tex", "Nearest: tables/table1.tex"),
    ],
)
def test_a_slip_is_one_line_with_the_nearest_name(inputs: Inputs, slip: str, answer: str) -> None:
    with pytest.raises(UserError) as caught:
        targets.check_target(slip, ["--cores", "2", slip], inputs, RULES)
    assert answer in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "target",
    [
        "report.html",
        "./report.html",
        "tables/table1.tex",
        "tables/climb/table2.macros.tex",
        "tables/climb/table2.pdf",
        "tables/claims.md",
        "figures/arena/figure1.svg",
        "tables/arena/leaderboard.md",
        "data/prepared/digits.json",
        f"{CELL}/CoDA.json",
        "README.md",
    ],
)
def test_what_rules_make_or_is_there_passes(inputs: Inputs, target: str) -> None:
    targets.check_target(target, [target], inputs, RULES)


def test_the_value_of_an_option_is_no_target(inputs: Inputs) -> None:
    targets.check_target(
        "some/where.yaml", ["--configfile", "some/where.yaml", "--cores", "2"], inputs, RULES
    )
    assert not any(
        map(targets.like_a_file, ["--cores=2", "-n", "2", "all", "scale=reduced", "mirror=/data/raw"])
    )
