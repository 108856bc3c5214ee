"""No table or figure is stale: whatever it shows is changed, and it is made again, to what an empty folder gives."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from projects import ROOT, TABLE, Project, fedbench, jobs

FIGURE = "figures/localscgdam/figure1"
LATEX = bool(shutil.which("latexmk") and shutil.which("pdflatex"))
TARGETS = (f"{TABLE}.pdf" if LATEX else f"{TABLE}.md", f"{FIGURE}.csv")
SHOWN, NOTHING = {"table", "figure", *["typeset"] * LATEX}, set[str]()
PAPER = "config/papers/localscgdam.yaml"
TRIALS = """
chosen: {LocalSGDM: {lr: %s}}
scores: {LocalSGDM: [{lr: %s, val_auc: 0.9}, {lr: 0.01, val_auc: 0.8}]}
protocol: {train: {iterations: 6}}
"""
Change = Callable[[Project], None]


def replaced(path: str, old: str, new: str) -> Change:
    """Return a change of a file of the project."""

    def change(project: Project) -> None:
        file = project.root / path
        text = file.read_text()
        assert old in text, path
        file.write_text(text.replace(old, new))

    return change


def trials(lr: float) -> Change:
    """Return a change that writes a file of trials, which chose this step size."""

    def change(project: Project) -> None:
        path = project.root / "config/tuned/localscgdam/Digits.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TRIALS % (lr, lr))

    return change


METHOD = "src/fedbench/algorithms/local_sgdm.py"
LEGEND, TYPESET = ("src/fedbench/report/legend.py", "src/fedbench/report/pdf.py")
SHIPPED, PRINT = "reproduced/reduced/localscgdam.csv", "published/localscgdam/localscgdam_table1.csv"
CHANGES: dict[str, tuple[Change, set[str]]] = {
    "trials of what is trained already": (trials(0.1), SHOWN),
    "trials that chose otherwise": (trials(0.05), {"train", *SHOWN}),
    "code of tables": (replaced(LEGEND, "mean ± standard", "average ± standard"), SHOWN),
    "code of typesetting": (replaced(TYPESET, "margin=1in", "margin=20mm"), SHOWN),
    "words of a method": (replaced(METHOD, "Return the clients' losses", "Return all losses"), NOTHING),
    "a statement of a method": (replaced(METHOD, "\n\n\n@", "\nMORE = 1\n\n\n@"), SHOWN),
    "shipped rows": (replaced(SHIPPED, "test_auc,0.981359,finished", "test_auc,0.971359,finished"), SHOWN),
    "published numbers": (replaced(PRINT, "SGDM,4,4,test_auc,0.9", "SGDM,4,4,test_auc,0.8"), SHOWN),
    "words of the paper's file": (replaced(PAPER, "Test AUC of all", "AUC of all"), SHOWN),
}  # fmt: skip
"""What is changed, and which rules have work then."""
REQUEST = "results/requests/localscgdam/table1/request.json"
CELL = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM.json"


def waiting(project: Project, *arguments: str) -> set[str]:
    """Return which rules have work to do for the table and the figure."""
    said = project.snakemake(*TARGETS, "-n", *arguments)
    return {"train", *SHOWN} & {*re.findall(r"^(?:local)?rule (\w+):", said, re.MULTILINE)}


@pytest.fixture
def complete(built: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The built project with shipped numbers, a library of its own, a typeset table and a figure."""
    for part in ("src/fedbench", "reproduced"):
        shutil.copytree(ROOT / part, built.root / part)
    monkeypatch.setenv("PYTHONPATH", str(built.root / "src"))
    built.snakemake(*TARGETS)
    return built


def test_each_thing_that_is_shown_is_changed_and_it_is_made_again(complete: Project, tmp_path: Path) -> None:
    kept, work = tmp_path / "kept", dict[str, set[str]]()
    assert waiting(complete) == NOTHING
    for name, (change, _) in CHANGES.items():
        shutil.copytree(complete.root, kept, symlinks=True)
        change(complete)
        work[name] = waiting(complete)
        shutil.rmtree(complete.root)
        kept.rename(complete.root)
    assert work == {name: rules for name, (_, rules) in CHANGES.items()}

    for change in (change for change, rules in CHANGES.values() if rules):
        change(complete)
    options = ["constants=paper", "set=train.batch_size=8"]
    complete.snakemake(*TARGETS, "--config", *options)
    for name in ("config", "data", "reproduced", "results", "src", "published"):
        shutil.copytree(complete.root / name, kept / name)
    options = [f"--set={option.removeprefix('set=')}" for option in options]
    for command, target in (("table", TABLE), ("figure", FIGURE)):
        fedbench(Project(kept), command, target.partition("/")[2], *options)
        for form in ("csv", "json"):
            path = f"{target}.{form}"
            assert (complete.root / path).read_bytes() == (kept / path).read_bytes(), path
    text = (complete.root / f"{TABLE}.md").read_text()
    assert text == (kept / f"{TABLE}.md").read_text()
    assert "AUC of all" in text and "average ± standard" in text and "trials of 6 iterations" in text


def emptied(path: str) -> Change:
    """Return a change that leaves nothing in a file."""
    return lambda project: (project.root / path).write_text("") and None


def removed(path: str) -> Change:
    """Return a change that removes files."""
    return lambda project: [file.unlink() for file in project.root.glob(path)] and None


def by_hand(*command: str) -> Change:
    """Return a change that a command of the library makes."""
    return lambda project: fedbench(project, *command) and None


UNSEEN: dict[str, tuple[Change, set[str]]] = {
    "a table of another scale": (by_hand("table", "localscgdam/table1", "--scale=reduced"), {"table"}),
    "a table with another option": (by_hand("table", "localscgdam/table1", "--set=tolerance=0.5"), {"table"}),
    "a cell of other seeds": (
        by_hand("run", "localscgdam/Digits/p4_imratio0.1/LocalSGDM", "--set=seeds=1"),
        {"train", "table"},
    ),
    "an emptied cell": (emptied(CELL), {"train", "table"}),
    "a cell that is gone": (removed(CELL), {"train", "table"}),
    "runs that are gone": (lambda project: shutil.rmtree(project.root / "results/runs"), {"train", "table"}),
    "summaries of partitions": (removed("data/partitions/digits/*.json"), {"partition", "train", "table"}),
    "the summary of a dataset": (
        removed("data/prepared/digits.json"), {"prepare", "partition", "train", "table"},
    ),
    "an emptied request": (emptied(REQUEST), {"table"}),
    "a table edited by hand": (replaced(f"{TABLE}.md", "Test AUC", "My AUC"), set()),
    "shorter training": (
        replaced("config/scales/tiny.yaml", "iterations: 12", "iterations: 6"), {"train", "table"},
    ),
    "a file of trials that goes": (removed("config/tuned/localscgdam/*.yaml"), {"train", "table"}),
}  # fmt: skip
"""What is changed in a project without Snakemake's own notes, and which rules have work then."""


def test_many_targets_are_asked_for_in_one_call_and_all_of_the_papers_in_a_plain_one(
    project: Project,
) -> None:
    targets = (f"{TABLE}.md", f"{FIGURE}.csv", "tables/localscgdam/claims.md", "report.html")
    said = project.snakemake(*targets, "-n")
    rules = {*re.findall(r"^(?:local)?rule (\w+):", said, re.MULTILINE)}
    assert {"table", "figure", "claims", "page"} <= rules
    assert not [*project.root.glob("results/requests/**/*.json")]
    with project.edit(PAPER) as paper:
        paper["figures"] = {"figure1": paper["figures"]["figure1"]}
    inputs = project.snakemake("-n").partition("rule everything:")[2]
    assert all(name in inputs for name in ("tables/table1.tex", "figures/figure1.pdf"))
    assert ("tables/table1.pdf" in inputs) == LATEX


def test_without_snakemakes_own_notes_nothing_stale_is_kept(built: Project, tmp_path: Path) -> None:
    target, kept = f"{TABLE}.md", tmp_path / "kept"
    trials(0.05)(built)
    built.snakemake(target)
    shutil.rmtree(built.root / ".snakemake")

    def work(*arguments: str) -> set[str]:
        said = built.snakemake(target, "-n", *arguments)
        shutil.rmtree(built.root / ".snakemake")
        return {*re.findall(r"^(?:local)?rule (\w+):", said, re.MULTILINE)}

    assert work() == set()
    assert work("--config", "tolerance=0.5") == work("--config", "shipped=false") == {"table"}
    assert work("--config", "seeds=0,1,2") == {"partition", "train", "table"}
    assert work() == set(), "a dry run leaves nothing behind"
    waits = dict[str, set[str]]()
    for name, (change, _) in UNSEEN.items():
        shutil.copytree(built.root, kept, symlinks=True)
        change(built)
        waits[name] = work()
        shutil.rmtree(built.root)
        kept.rename(built.root)
    assert waits == {name: rules for name, (_, rules) in UNSEEN.items()}

    before = (built.root / target).read_bytes()
    fedbench(built, "table", "localscgdam/table1", "--scale=reduced")
    assert (built.root / target).read_bytes() != before
    (built.root / CELL).write_text("")
    assert jobs(built.snakemake(target)) == {"train": 1, "table": 1}
    assert (built.root / target).read_bytes() == before
    assert "Nothing to be done" in built.snakemake(target)


def test_runs_that_are_forgotten_or_set_aside_are_trained_again(built: Project) -> None:
    before, curves, table = built.runs(), built.curves(), (built.root / f"{TABLE}.md").read_bytes()
    assert "2 of 2 runs forgotten" in fedbench(built, "forget", "LocalSGDM", "--paper", "localscgdam")
    damaged = next(key for key, (run, _) in before.items() if run == "local_sgdam 0")
    (built.root / f"results/runs/{damaged}/curve.csv").write_text("")
    assert f"{damaged}  damaged" in fedbench(built, "store", "verify", "--set-aside")
    assert jobs(built.snakemake(f"{TABLE}.md")) == {"train": 2, "table": 1}
    (built.root / f"results/runs/{damaged}.damaged1").rename(built.root / "aside")
    again = {run for key, (run, made) in built.runs().items() if before[key] != (run, made)}
    assert again == {"local_sgdm 0", "local_sgdm 1", "local_sgdam 0"}
    assert built.curves() == curves and (built.root / f"{TABLE}.md").read_bytes() == table
    assert "Nothing to be done" in built.snakemake(f"{TABLE}.md")
