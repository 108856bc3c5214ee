"""Results of cells: lists of runs, made again when they are damaged, forgotten, or say another thing than the store."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy import call

from fedbench.errors import UserError
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.store import cell_files, code, journal
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.train import training

pytestmark = pytest.mark.usefixtures("project")
TRAIN = TrainSpec(rounds=1, period=1, batch_size=1)
RUN = RunSpec(
    data=DataSpec(dataset="digits", clients=2), network=NetworkSpec(name="mlp"), method="coda", params={},
    train=TRAIN, seed=0,
)  # fmt: skip
CELL = Cell(paper="toy", scale="demo", dataset="Digits", setting={}, method="CoDA", runs=[RUN])
RECORD = Record(RUN.key, RUN.model_dump(mode="json"), "finished", "", {"test_auc": 0.942}, {}, {})


@pytest.fixture
def path() -> Path:
    store = Store()
    with store.claim(RUN.key):
        cell_files.write_cell(CELL, [store.finish(RECORD, [{"round": 0, "test_auc": 0.942}])])
    return CELL.path


def test_a_result_names_its_runs_and_what_is_none_has_neither_runs_nor_a_key(path: Path) -> None:
    assert cell_files.state_of(path) == (CELL.key, {RUN.key: None}) and cell_files.keys(path) == {0: RUN.key}
    no_list_of_runs = ("[]", "{}", '{"runs": 1}', '{"runs": [1]}', '{"runs": [{"seed": "x"}]}')
    for content in ("{", "[" * 10**5, *no_list_of_runs):
        path.write_text(content)
        assert cell_files.state_of(path) == ("", {}) and cell_files.keys(path) == {}, content
    path.unlink()
    assert cell_files.state_of(path) == ("", {}) and cell_files.keys(path) == {}


@pytest.mark.parametrize(
    "made",
    [{"metrics": {"test_auc": 0.5}}, {"status": "diverged"}, {"provenance": {"commit": "of other code"}}],
)
def test_a_run_of_the_same_key_with_other_numbers_is_another_result(path: Path, made: Any) -> None:
    """Else no table would be made again after a run was forgotten and trained by other code."""
    cell_files.write_cell(CELL, [RECORD])
    before = path.read_bytes()
    cell_files.write_cell(CELL, [replace(RECORD, provenance={"seconds": 9.0})])
    assert path.read_bytes() == before, "the same numbers after another time"
    cell_files.write_cell(CELL, [replace(RECORD, **made)])
    assert path.read_bytes() != before


def test_a_curve_is_what_was_written_or_an_error(path: Path) -> None:
    store = Store()
    assert store.table(RUN.key, "curve.csv") == b"round,test_auc\n0,0.942\n"
    assert store.table(RUN.key, "clients.csv") is None and store.table("0" * 16, "curve.csv") is None
    (store.path(RUN.key) / "curve.csv").write_text("round,test_auc\n0,0.142\n")
    with pytest.raises(UserError, match=r"curve\.csv is not what was written"):
        store.table(RUN.key, "curve.csv")
    record = store.record(RUN.key)
    assert record is not None and record.metrics == RECORD.metrics, "its record is whole"


PLAIN = "toy/Digits/p2_imratio0.2/Plain"
OTHER = "toy/Digits/p2_imratio0.2/Proximal"


def test_the_cells_named_are_trained_again_to_the_same_numbers_and_no_others(project: Path) -> None:
    for cell in (PLAIN, OTHER):
        call("run", cell)
    store, cells = Store(), {cell.name: cell for cell in Plan(load_config(), "toy").cells()}
    keys = {name: [run.key for run in cells[name].runs] for name in (PLAIN, OTHER)}
    before = {path: path.read_bytes() for path in sorted(project.glob("results/runs/*/curve.csv"))}
    assert call("forget", PLAIN).stdout == f"{PLAIN}, scale demo: 2 of 2 runs forgotten\n"
    assert store.keys() == sorted(keys[OTHER])
    noted = [line["key"] for line in journal.read_journal(store.root) if line["event"] == "forgotten"]
    assert noted == keys[PLAIN]
    assert not cells[PLAIN].path.exists() and cells[OTHER].path.exists()
    assert not [path for path in store.root.iterdir() if path.name.startswith(tuple(keys[PLAIN]))]
    call("run", PLAIN)
    assert {path: path.read_bytes() for path in sorted(project.glob("results/runs/*/curve.csv"))} == before


def test_runs_that_other_code_made_are_forgotten_whatever_the_call_is_configured_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With every seed that is stored; without a pattern of every configuration, as trials have one of their own."""
    for cell, given, made_by in (
        (PLAIN, ["seeds=0"], "old"), (PLAIN, ["seeds=3"], "old"), (PLAIN, ["seeds=0", "train.iterations=4"], "old"),
        (OTHER, ["seeds=3"], "old"), (OTHER, ["seeds=0"], "new"),
    ):  # fmt: skip
        monkeypatch.setattr(training, "digest_of", lambda run, made_by=made_by: made_by)
        call("run", cell, *(word for each in given for word in ("--set", each)))
    monkeypatch.setattr(code, "digest_of", lambda run: "new")
    said = call("run", "p2_imratio0.2", "--set", "seeds=0").stdout
    assert f"other code made 1 runs of {PLAIN};" in said and "forget --other-code" in said
    assert call("list", "p2_imratio0.2", "--set", "seeds=0,1").stdout.splitlines() == [
        f"{PLAIN}  1/2 runs, not tuned, other code", f"{OTHER}  1/2 runs, not tuned",
        f"{PLAIN}_too  1/2 runs, not tuned",
    ]  # fmt: skip
    lines = call("forget", "Plain", "--other-code").stdout.splitlines()
    shown = Path(f"results/cells/demo/{PLAIN}.json")
    assert lines == ["fedavg on digits: 2 runs forgotten", f"{shown} showed one of them and is made again"]
    assert not shown.exists() and len(Store().keys()) == 4
    lines = call("forget", "--other-code").stdout.splitlines()
    assert lines == ["fedavg on digits: 1 run forgotten", "fedprox on digits: 1 run forgotten"]
    left = {record.provenance["code"] for record in map(Store().record, Store().keys()) if record}
    assert left == {"new"} and "no run" in call("forget", "--other-code").stdout
    assert "no run of these cells" in call("forget", "--other-code", "--scale", "demo").stdout
    call("forget", status=2)


def test_of_a_damaged_run_it_is_not_said_that_other_code_made_it(path: Path) -> None:
    """Else one would keep `fedbench list` and every other cell of a call, and `forget --other-code` everything."""
    (Store().path(RUN.key) / "run.json").write_text("{")
    assert path.exists() and not cell_files.by_other_code(RUN, Store())
    assert "no run" in call("forget", "--other-code").stdout


def test_other_code_is_said_of_runs_that_the_store_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are made again."""
    monkeypatch.setattr(training, "digest_of", lambda run: "old")
    call("run", PLAIN, "--set", "seeds=0")
    assert "other code" in call("list", PLAIN, "--set", "seeds=0").stdout
    shutil.rmtree("results/runs")
    assert "other code" not in call("list", PLAIN, "--set", "seeds=0").stdout


@pytest.mark.parametrize(
    ("pattern", "forgotten"),
    [
        ("Plain", {"Plain"}),
        ("Digits/p2_imratio0.2/Plain", {"Plain"}),
        ("*/p2_*/P*", {"Plain", "Plain_too", "Proximal"}),
        ("toy/*/Proximal", {"Proximal"}),
        ("toy/", {"Plain", "Plain_too", "Proximal"}),
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
    result = call("forget", pattern, status=0 if forgotten else 2)
    gone = {line.partition(",")[0] for line in result.stdout.splitlines()}
    assert forgotten or f"no cell matches {pattern!r}; a word has to be a whole part" in result.stderr
    assert all(line.endswith("1 of 2 runs forgotten") for line in result.stdout.splitlines())
    assert {name.split("/")[3] for name in gone} == forgotten
    left = {cell.name for cell in cells if store.checkpoint(cell.runs[0].key).exists()}
    assert left == {cell.name for cell in cells} - gone


def test_nothing_to_forget_is_said() -> None:
    assert call("forget", PLAIN).stdout == "none of these cells has a run at scale demo\n"
    assert call("forget", "Plain", "--scale", "paper").stdout.endswith("at scale paper\n")
    assert not Path("results").exists()


def test_a_run_that_cells_share_is_forgotten_for_both(project: Path) -> None:
    (project / "config/papers/mine.yaml").write_text("extends: toy\ntables: {table1: {}}\n")
    call("run", PLAIN)
    shared = PLAIN.replace("toy/", "mine/")
    assert call("list", shared).stdout == f"{shared}  2/2 runs, not tuned\n", "its name names its paper"
    result = Path(f"results/cells/demo/{PLAIN}.json")
    assert result.exists()
    said = call("forget", shared).stdout
    assert f"{result} showed one of them and is made again" in said
    assert Store().keys() == [] and not result.exists()
