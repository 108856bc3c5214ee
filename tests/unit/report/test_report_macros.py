"""The numbers of a table as LaTeX macros: a text shows those of the table, and what is not there is an error."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from report_project import Project, cell_of, table_of

from fedbench.errors import UserError
from fedbench.report.pdf import compile_source
from fedbench.study.schema import Config

needs_latex = pytest.mark.skipif(
    not all(map(shutil.which, ("latexmk", "pdftotext"))), reason="latexmk or pdftotext is not installed"
)
ROOT = Path(__file__).parents[3]
FIRST = "localscgdam/table1/FashionMNIST/4/LocalSCGDAM"


@pytest.fixture
def files(tiny: Project) -> dict[str, bytes]:
    """The macros of a table of each paper, by the names of their files."""
    folder = tiny.root / "macros"

    def make() -> None:
        config = Config(scale="reduced")
        tiny.fill("climb", "table2", config, ("test_minority_accuracy", "test_overall_accuracy"))
        folder.mkdir()
        for paper, name in (("localscgdam", "table1"), ("climb", "table2")):
            (folder / f"{paper}.tex").write_text(table_of(config, paper, name).macros())

    tiny.once("macros", make)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def typeset(text: str, files: dict[str, bytes], folder: Path) -> str:
    """Compile a document that reads the macros; return what its page says."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    read = "".join(rf"\input{{{folder / name}}}" for name in files)
    source = rf"\documentclass{{article}}\pagestyle{{empty}}{read}\begin{{document}}{text}\end{{document}}"
    content, _ = compile_source(source, "the text")
    pdf = folder / "text.pdf"
    pdf.write_bytes(content)
    return subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True).stdout


@needs_latex
def test_a_text_shows_the_numbers_of_the_tables(files: dict[str, bytes], tmp_path: Path) -> None:
    text = rf"""
    \edef\digits{{\fedbench{{{FIRST}}}}}\ifdim\digits pt>0.97pt large\fi\par
    {FIRST.count("/")} $\fedbench{{{FIRST}}} \pm \fedbench{{{FIRST}/std}}$, \fedbench{{{FIRST}/seeds}} seeds,
    \fedbench{{{FIRST}/scale}}, printed \fedbench{{{FIRST}/paper}}, \fedbench{{{FIRST}/verdict}};
    CoDA $\fedbench{{localscgdam/table1/FashionMNIST/4/CoDA/difference}}$ \par
    \fedbench{{climb/table2/MNIST/10/1/0.1/CLIMB/test_minority_accuracy/paper}}
    \fedbench{{climb/table2/MNIST/10/1/0.1/CLIMB/test_overall_accuracy/paper}}"""
    said = " ".join(typeset(text, files, tmp_path).split())
    assert said.startswith(
        "large 4 0.980 ± 0.005, 3 seeds, reduced, printed 0.980, inconclusive; CoDA −0.036 "
    )
    for number, metric in zip(said.split()[-2:], ("minority_accuracy", "overall_accuracy"), strict=True):
        assert re.search(rf"{metric}/paper}}{{{re.escape(number)}}}", files["climb.tex"].decode())


@needs_latex
@pytest.mark.parametrize(
    ("key", "why"),
    [
        (f"{FIRST}X", f"fedbench: there is no number {FIRST}X"),
        ("climb/table2/test_a", "fedbench: there is no number climb/table2/test_a"),
        ("localscgdam/table1/Melanoma/8/CoDA", "localscgdam/table1/Melanoma/8/CoDA: not run"),
        ("localscgdam/table1/FashionMNIST/4/LocalSGDM_RL/std", "LocalSGDM_RL/std: diverged"),
        ("localscgdam/table1/FashionMNIST/4/LocalSGDM_RL/difference", "LocalSGDM_RL/difference: diverged"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_it(
    key: str, why: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"the text does not compile: .*{re.escape(why)}"):
        typeset(rf"\fedbench{{{key}}}", files, tmp_path)


def test_a_part_of_the_seeds_is_no_number_and_each_number_has_one_key(
    filled: Callable[[str, str], Project], reduced: Config
) -> None:
    project = filled("climb", "table2")
    cell = cell_of(project, reduced, "CIFAR10", "CoDA")
    project.finish(cell, [0.9, 0.91, 0.92])
    key = "localscgdam/table1/CIFAR10/4/CoDA"
    assert rf"\fedbenchnumber{{{key}}}{{0.910}}" in table_of(reduced).macros()
    project.forget(cell.runs[2:])
    text = table_of(reduced).macros()
    for part in ("", "/std", "/seeds", "/scale"):
        assert rf"\fedbenchnone{{{key}{part}}}{{2 of 3 seeds}}" in text
    text = table_of(reduced, "climb", "table2").macros()
    keys = re.findall(r"^\\fedbench(?:number|none){([^}]*)}", text, re.MULTILINE)
    parts = 2 * 2 * 2 * 3 * 4 * 2 * 7  # datasets, three settings, methods, metrics, parts
    assert len(keys) == len({*keys}) == parts


@needs_latex
def test_a_text_quotes_numbers_and_ranks_of_a_leaderboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    board = table_of(Config(scale="reduced"), "arena", "leaderboard")
    key = "arena/leaderboard/FashionMNIST/FedDyn/test_auc"
    of = "dataset == 'FashionMNIST' and method == 'FedDyn' and metric == 'test_auc'"
    row = board.rows.query(of).iloc[0]
    text = rf"\fedbench{{{key}}}, \fedbench{{{key}/std}}, \fedbench{{{key}/seeds}}; rank \fedbench{{{key}/rank}}."
    said = typeset(text, {"board.tex": board.macros().encode()}, tmp_path)
    rank = "–".join(map(str, dict.fromkeys((row["rank_best"], row["rank_worst"]))))
    assert f"{row['mean']:.3f}, {row['std']:.3f}, {row['n_seeds']}; rank {rank}." in said
