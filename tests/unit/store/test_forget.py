"""``fedbench forget``: what is trained again after it, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fedbench.commands.cli import app
from fedbench.store import code, journal
from fedbench.store.runs import Store
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.train import training

pytestmark = pytest.mark.usefixtures("project")
CELL = "toy/Digits/p2_imratio0.2/Plain"
OTHER = "toy/Digits/p2_imratio0.2/Proximal"


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result


def test_the_cells_named_are_trained_again_to_the_same_numbers_and_no_others(project: Path) -> None:
    for cell in (CELL, OTHER):
        call("run", cell)
    store, cells = Store(), {cell.name: cell for cell in Plan(load_config(), "toy").cells()}
    keys = {name: [run.key for run in cells[name].runs] for name in (CELL, OTHER)}
    before = {path: path.read_bytes() for path in sorted(project.glob("results/runs/*/curve.csv"))}
    assert call("forget", CELL).stdout == f"{CELL}, scale demo: 2 of 2 runs forgotten\n"
    assert store.keys() == sorted(keys[OTHER])
    noted = [line["key"] for line in journal.read_journal(store.root) if line["event"] == "forgotten"]
    assert noted == keys[CELL]
    assert not cells[CELL].path.exists() and cells[OTHER].path.exists()
    assert not [path for path in store.root.iterdir() if path.name.startswith(tuple(keys[CELL]))]
    call("run", CELL)
    assert {path: path.read_bytes() for path in sorted(project.glob("results/runs/*/curve.csv"))} == before


def test_only_runs_that_other_code_made_are_forgotten_where_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cell, made_by in ((CELL, "old"), (OTHER, "new")):
        monkeypatch.setattr(training, "digest_of", lambda run, made_by=made_by: made_by)
        call("run", cell)
    monkeypatch.setattr(code, "digest_of", lambda run: "new")
    said = call("run", "p2_imratio0.2").stdout
    assert f"other code made 2 runs of {CELL};" in said and "forget --other-code" in said
    assert call("forget", "--other-code").stdout == f"{CELL}, scale demo: 2 of 2 runs forgotten\n"
    assert "other code" in call("forget", "--other-code").stdout
    assert CliRunner().invoke(app, ["forget"]).exit_code == 2


@pytest.mark.parametrize(
    ("pattern", "forgotten"),
    [
        ("Plain", {"Plain"}),
        ("Digits/p2_imratio0.2/Plain", {"Plain"}),
        ("*/p2_*/P*", {"Plain", "Plain_too", "Proximal"}),
        ("toy/*/Proximal", {"Proximal"}),
        ("Pla", set()),
        ("igits/p2_imratio0.2/Plain", set()),
        ("lain*", set()),
    ],
)
def test_a_word_is_a_whole_part_of_a_name_and_unfinished_runs_go_too(
    pattern: str, forgotten: set[str]
) -> None:
    store, cells = Store(), Plan(load_config(), "toy").cells()
    for cell in cells:
        with store.claim(cell.runs[0].key):
            store.checkpoint(cell.runs[0].key).write_bytes(b"of the old code")
    result = CliRunner().invoke(app, ["forget", pattern])
    gone = {line.partition(",")[0] for line in result.stdout.splitlines()}
    assert result.exit_code == (0 if forgotten else 2), result.output
    assert forgotten or f"no cell matches {pattern!r}" in result.stderr
    assert all(line.endswith("1 of 2 runs forgotten") for line in result.stdout.splitlines())
    assert {name.split("/")[3] for name in gone} == forgotten
    left = {cell.name for cell in cells if store.checkpoint(cell.runs[0].key).exists()}
    assert left == {cell.name for cell in cells} - gone


def test_nothing_to_forget_is_said() -> None:
    assert call("forget", CELL).stdout == "none of these cells has a run at scale demo\n"
    assert call("forget", "Plain", "--scale", "paper").stdout.endswith("at scale paper\n")
    assert not Path("results").exists()


def test_a_run_that_cells_share_is_forgotten_for_both(project: Path) -> None:
    (project / "config/papers/mine.yaml").write_text("extends: toy\ntables: {table1: {}}\n")
    call("run", CELL)
    shared = CELL.replace("toy/", "mine/")
    assert call("list", shared).stdout == f"{shared}  2/2 runs, not tuned\n", "its name names its paper"
    result = Path(f"results/cells/demo/{CELL}.json")
    assert result.exists()
    said = call("forget", shared).stdout
    assert f"{result} showed one of them and is made again" in said
    assert Store().keys() == [] and not result.exists()
