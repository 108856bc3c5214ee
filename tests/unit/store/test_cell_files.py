"""Results of cells: lists of runs, made again when they are damaged or say another thing than the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedbench.errors import UserError
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.store import cell_files
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell

TRAIN = TrainSpec(rounds=1, period=1, batch_size=1)
RUN = RunSpec(
    data=DataSpec(dataset="digits", clients=2), network=NetworkSpec(name="mlp"), method="coda", params={},
    train=TRAIN, seed=0,
)  # fmt: skip
CELL = Cell(paper="toy", scale="demo", dataset="Digits", setting={}, method="CoDA", runs=[RUN])
RECORD = Record(RUN.key, RUN.model_dump(mode="json"), "finished", "", {"test_auc": 0.942}, {}, {})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The result of a cell with one run, in a project."""
    monkeypatch.chdir(tmp_path)
    store = Store()
    with store.claim(RUN.key):
        cell_files.write_cell(CELL, [store.finish(RECORD, [{"round": 0, "test_auc": 0.942}])])
    return CELL.path


def test_a_result_names_its_runs_and_what_is_none_has_neither_runs_nor_a_key(path: Path) -> None:
    assert cell_files.state_of(path) == (CELL.key, [None]) and cell_files.keys(path) == {0: RUN.key}
    for content in (
        "{",
        "[" * 10**5,
        "[]",
        "{}",
        '{"runs": 1}',
        '{"runs": [1]}',
        '{"runs": [{"seed": "x"}]}',
    ):
        path.write_text(content)
        assert cell_files.state_of(path) == ("", []) and cell_files.keys(path) == {}, content
    path.unlink()
    assert cell_files.state_of(path) == ("", []) and cell_files.keys(path) == {}


def test_results_of_a_run_that_is_set_aside_are_made_again(path: Path) -> None:
    assert list(cell_files.drop(["0" * 16])) == [] and path.exists()
    assert list(cell_files.drop([RUN.key])) == [path] and not path.exists()


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
    store.curve(RUN.key).write_text("round,test_auc\n0,0.142\n")
    with pytest.raises(UserError, match=r"curve\.csv is not what was written"):
        store.table(RUN.key, "curve.csv")
    record = store.record(RUN.key)
    assert record is not None and record.metrics == RECORD.metrics, "its record is whole"
