"""The runs that are kept in git: sound, of today's configuration, and as docs/reference/results/overview.md says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from fedbench.commands.options import configured, planned
from fedbench.report import facts
from fedbench.results.export import POINTS
from fedbench.results.frame import COSTS
from fedbench.results.shipped import COLUMNS, path_of
from fedbench.study.configuration import load_config, load_paper
from fedbench.study.plan import Plan
from fedbench.study.schema import Value

ROOT = Path(__file__).parents[3]
CURVES = sorted(ROOT.glob("reproduced/*/curves/*.csv"))
FILES = sorted(ROOT.glob("reproduced/*/*.csv"))
RESULTS = (ROOT / "docs/reference/results/overview.md").read_text(encoding="utf-8")
PATHS = pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[-2:]))


def read(path: Path) -> pd.DataFrame:
    """The rows of a file: settings and keys as texts, what is empty as an empty text."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    return rows.assign(seed=rows["seed"].astype(int), value=pd.to_numeric(rows["value"]))


@PATHS
def test_every_row_has_a_run_a_status_and_a_commit(path: Path) -> None:
    rows = read(path)
    paper = load_paper(path.stem)
    place = ["dataset", *paper.settings, "method"]
    assert list(rows.columns) == [*place, *[*COLUMNS][1:]]
    assert not rows.duplicated([*place, "seed", "metric"]).any()
    assert rows.groupby([*place, "seed"])["key"].nunique().max() <= rows["metric"].nunique()
    broken = rows["status"] == "diverged"
    assert (
        set(rows["status"]) <= {"finished", "averaged", "diverged"}
        and rows.loc[~broken, "value"].notna().all()
    )
    assert (rows.loc[broken, "reason"] != "").all() and (rows.loc[broken, "metric"] == "").all(), (
        "why is said"
    )
    averaged = set(rows.loc[rows["status"] == "averaged", "metric"])
    assert all(name in COSTS or name.startswith("device_") for name in averaged), "never a result"
    commits = {commit for cell in rows["commit"] for commit in cell.split()}
    assert all(re.fullmatch("[0-9a-f]{12}", commit) for commit in commits), "made from committed code"
    assert {commit for commit in commits if not in_history(commit)} == set()


@PATHS
def test_every_key_is_one_of_the_configuration(path: Path) -> None:
    """A row under another key is never shown: its run has to be made anew, or the row goes."""
    plan = Plan(load_config(overrides={"scale": path.parent.name}), path.stem)
    paper = plan.study
    values: dict[str, set[Value]] = {name: {entry.default} for name, entry in paper.settings.items()}
    for shown in (*paper.tables.values(), *paper.figures.values()):
        for name, some in paper.values(shown).items():
            values[name] |= {*some}
    by_text = {name: {str(value): value for value in some} for name, some in values.items()}
    rows = read(path)
    single = rows[~rows["key"].str.contains(" ")]
    for (dataset, *texts, method), group in single.groupby(["dataset", *paper.settings, "method"]):
        setting = {name: by_text[name][text] for name, text in zip(paper.settings, texts, strict=True)}
        run = plan.cell(dataset, setting, method).runs[0]
        keys = {seed: run.seeded(int(seed)).key for seed in group["seed"].unique()}
        assert (group["key"] == group["seed"].map(keys)).all(), (dataset, setting, method)
    known = {run.key for cell in plan.cells() for run in [cell.runs[0].seeded(0)]}
    fitted = rows[rows["key"].str.contains(" ") & (rows["seed"] == 0)]
    assert {key for keys in fitted["key"] for key in keys.split()} <= known


@pytest.mark.parametrize("path", CURVES, ids=lambda path: "-".join(path.parts[-3:]))
def test_a_shipped_curve_is_that_of_a_shipped_run_and_has_what_the_run_reports(path: Path) -> None:
    """Costs at its end, metrics there too or, as a study says, at the best evaluation by validation."""
    runs = read(path_of(path.parts[-3], path.stem)).pivot_table("value", "key", "metric")
    select = load_paper(path.stem).defaults["train"].get("select")
    for key, curve in pd.read_csv(path).groupby("key"):
        assert 1 < len(curve) <= POINTS and curve["round"].is_monotonic_increasing
        chosen = len(curve) - 1 if select is None else curve[select].reset_index(drop=True).idxmax()
        for metric in curve.columns.intersection(runs.columns):
            at = curve[metric].iloc[-1 if metric in COSTS else chosen]
            assert at == pytest.approx(runs.loc[key, metric], rel=1e-5), (key, metric)


def in_history(commit: str) -> bool:
    """Whether a commit leads to this checkout; one without history, such as an unpacked archive, cannot say no."""
    local = ["git", "-C", str(ROOT)]
    shallow = subprocess.run([*local, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return True
    return (
        subprocess.run(
            [*local, "merge-base", "--is-ancestor", commit, "HEAD"], capture_output=True
        ).returncode
        == 0
    )


def test_every_shipped_count_of_data_is_of_a_rule_of_the_configuration() -> None:
    """And stands in its table, where the data themselves are not here."""
    rows = pd.read_csv(ROOT / "reproduced/facts.csv")
    assert set(rows["study"]) == {"codasca", "cycp", "hospitals"}
    for study, counts in rows.groupby("study"):
        plan = Plan(load_config(overrides={"scale": "paper", "data_dir": "nowhere"}), study)
        tables = [
            facts.facts_table(plan, name) for name, spec in plan.study.tables.items() if spec.kind == "facts"
        ]
        keys = {key for table in tables for key in table.provenance["partitions"].values()}
        assert set(counts["key"]) <= keys
        shown = {dataset for table in tables for dataset in table.rows.dropna(subset="value")["dataset"]}
        assert shown == set(counts["dataset"])


def test_the_results_say_how_each_run_was_shipped() -> None:
    """Every run of every file is one that a listed command exports."""
    calls = re.findall(r"^fedbench export (\S+) --scale (\S+)(.*)$", RESULTS, flags=re.M)
    exported: dict[Path, set[str]] = {}
    for target, scale, rest in calls:
        sets = re.findall(r"--set (\S+)", rest)
        plan, table = planned(target, configured(scale, None, sets), "table")
        keys = {run.key for cell in plan.cells(table) for run in cell.runs}
        exported.setdefault(ROOT / path_of(scale, plan.study.key), set()).update(keys)
    assert set(exported) == set(FILES)
    for path, keys in exported.items():
        shipped = {key for cell in read(path)["key"] for key in cell.split()}
        assert shipped - keys == set(), path
