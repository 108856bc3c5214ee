"""Results of cells: sealed, and set aside when they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedbench import seal
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.specs import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.store import results
from fedbench.store.record import Record
from fedbench.store.runs import Store

TRAIN = TrainSpec(rounds=1, period=1, batch_size=1)
RUN = RunSpec(
    data=DataSpec(dataset="digits", clients=2), network=NetworkSpec(name="mlp"), method="coda", params={},
    train=TRAIN, seed=0,
)  # fmt: skip
CELL = Cell(paper="toy", scale="demo", dataset="Digits", setting={}, method="CoDA", runs=[RUN])


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The result of a cell with one run, in a project."""
    monkeypatch.chdir(tmp_path)
    store = Store()
    with store.claim(RUN.key):
        record = Record(RUN.key, RUN.model_dump(mode="json"), "finished", "", {"test_auc": 0.942}, {}, {})
        results.write(CELL, [store.finish(record, [{"round": 0, "test_auc": 0.942}])])
    return CELL.path


def test_a_changed_digit_is_no_number(path: Path) -> None:
    assert results.read(path)[0]["metrics"] == {"test_auc": 0.942}
    path.write_text(path.read_text().replace("0.942", "0.142"))
    with pytest.raises(ValueError, match="is not what was written"):
        results.read(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("facts", {"test_auc": {"pace": "fast"}}),
        ("facts", {"test_auc": {"sign": 0.5}}),
        ("status", None),
        ("status", "perfect"),
        ("metrics", {"test_auc": "0.9"}),
        ("seed", "0"),
        ("seed", -1),
    ],
)
def test_a_sealed_file_of_nonsense_is_no_result(path: Path, name: str, value: object) -> None:
    """Anyone can write a checksum: a run without a status ended in a traceback."""
    content = seal.read(path)
    content["runs"][0] = {k: v for k, v in content["runs"][0].items() if k != name}
    if value is not None:
        content["runs"][0][name] = value
    seal.write(path, content)
    with pytest.raises(ValueError, match=f"is not what was written .*{name}"):
        results.read(path)


def test_a_result_without_a_checksum_is_no_result(path: Path) -> None:
    path.write_text(json.dumps(seal.read(path)).replace("0.942", "0.142"))
    with pytest.raises(ValueError, match="has no checksum"):
        results.read(path)


def test_damaged_results_are_set_aside_and_whole_ones_stay(path: Path) -> None:
    assert list(results.set_damaged_aside()) == []
    path.write_text("{")
    ((result, why),) = results.set_damaged_aside()
    assert result == path and "Expecting" in why
    assert not path.exists() and path.with_name("CoDA.json.damaged").read_text() == "{"


def test_results_of_a_run_that_is_set_aside_are_made_again(path: Path) -> None:
    assert list(results.drop(["0" * 16])) == [] and path.exists()
    assert list(results.drop([RUN.key])) == [path] and not path.exists()


def test_a_curve_is_what_was_written_or_an_error(path: Path) -> None:
    store = Store()
    assert store.table(RUN.key, "curve.csv") == b"round,test_auc\n0,0.942\n"
    assert store.table(RUN.key, "clients.csv") is None and store.table("0" * 16, "curve.csv") is None
    store.curve(RUN.key).write_text("round,test_auc\n0,0.142\n")
    with pytest.raises(UserError, match=r"curve\.csv is not what was written"):
        store.table(RUN.key, "curve.csv")
