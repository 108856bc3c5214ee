"""Damage and odd input of every kind, drawn from seeds: a right result or one line, never another number.

``make fuzz`` tries the numbers in ``TRIED``; ``make test`` a twentieth of them.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from bounds import bounded

from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.engine import checkpoint
from fedbench.errors import UserError
from fedbench.results import collect
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.store import cell_files
from fedbench.store.record import MODEL, Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.train.initial_weights import model_bytes

PART = 1 if os.environ.get("FEDBENCH_FUZZ") else 20
TRIED = {"flips": 1000, "configurations": 1000}
ROOT = Path(__file__).parents[2]
RULE = DataSpec(dataset="digits", clients=3)
RUN = RunSpec(
    data=RULE, network=NetworkSpec(name="mlp"), method="coda", params={},
    train=TrainSpec(rounds=1, period=1, batch_size=1), seed=0,
)  # fmt: skip
CELL = Cell(paper="toy", scale="demo", dataset="Digits", setting={"p": 4}, method="CoDA", runs=[RUN])


def rounds(kind: str) -> Iterator[random.Random]:
    """Yield a generator for each case of a kind, the same ones every time."""
    for number in range(0, TRIED[kind], PART):
        yield random.Random(f"{kind} {number}")


def flipped(content: bytes, draw: random.Random) -> bytes:
    """Change one byte anywhere."""
    changed = bytearray(content)
    changed[draw.randrange(len(changed))] ^= draw.randrange(1, 256)
    return bytes(changed)


def said(call: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a call gives, or the one line it says instead; anything else is a failure of the test."""
    try:
        with bounded():
            return call(), ""
    except UserError as error:
        assert len(str(error)) < 2000, "an error line is short"
        return None, str(error)


@pytest.fixture
def project(tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with prepared digits, a partition, a finished run with its cell, and tuned values."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "config", "config")
    shutil.copytree(digits, "data")
    make_partition(RULE, 0, "data")
    store = Store()
    with store.claim(RUN.key):
        record = Record(RUN.key, RUN.model_dump(mode="json"), "finished", "", {"test_auc": 0.942}, {}, {})
        curve: list[dict[str, float | str]] = [{"round": 0, "test_auc": 0.5}, {"round": 1, "test_auc": 0.942}]
        clients: list[dict[str, float | str]] = [{"round": 1, "quantity": "dual", "client0": 0.25}]
        kept = {"model.pt": model_bytes({"x": torch.rand(9)})}
        cell_files.write_cell(CELL, [store.finish(record, curve, clients, kept)])
    torch.manual_seed(0)
    checkpoint.save(Path("checkpoint.pt"), "k", {"x": torch.rand(300)})
    return tmp_path


def read_run() -> Any:
    record = Store().load(RUN.key)
    assert record is not None
    tables = [Store().table(RUN.key, name) for name in ("curve.csv", "clients.csv")]
    return record.metrics, tables, Store().path(RUN.key).joinpath(MODEL).read_bytes()


def read_cell() -> Any:
    """The numbers of a cell: its file has none, and a key in it that is another is none of the cell's."""
    assert len(cell_files.keys(CELL.path)) <= 1
    cell_files.state_of(CELL.path)
    return collect.runs_of(CELL).records


def read_prepared() -> Any:
    prepared = load_prepared("digits", "data")
    return [part.tobytes() for part in (prepared.x_train, prepared.y_train, prepared.x_test, prepared.y_test)]


def read_partition() -> Any:
    partition = load_partition(RULE, 0, "data")
    return [
        part.tobytes() for part in (partition.indices, partition.offsets, partition.y_train, partition.y_test)
    ]


def read_checkpoint() -> Any:
    loaded = checkpoint.load(Path("checkpoint.pt"), "k", torch.device("cpu"), {"x": torch.rand(300)})
    if loaded is None:
        raise UserError("the run starts again")
    return loaded["x"].tolist()


READERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "run.json": (f"results/runs/{RUN.key}/run.json", read_run),
    "curve.csv": (f"results/runs/{RUN.key}/curve.csv", read_run),
    "cell": (str(CELL.path), read_cell),
    "x_train.npy": ("data/prepared/digits/x_train.npy", read_prepared),
    "prepared.json": ("data/prepared/digits.json", read_prepared),
    "partition.npz": (f"data/partitions/digits/{RULE.partition_key(0)}.npz", read_partition),
    "partition.json": (f"data/partitions/digits/{RULE.partition_key(0)}.json", read_partition),
    "clients.csv": (f"results/runs/{RUN.key}/clients.csv", read_run),
    "model.pt": (f"results/runs/{RUN.key}/{MODEL}", read_run),
    "checkpoint": ("checkpoint.pt", read_checkpoint),
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("kind", READERS)
def test_a_changed_byte_is_the_same_number_or_an_error(kind: str) -> None:
    name, read = READERS[kind]
    path = Path(name)
    content, right = path.read_bytes(), read()
    for draw in rounds("flips"):
        path.write_bytes(flipped(content, draw))
        result, line = said(read)
        assert line or result == right, "another number"
        for left in path.parent.glob("*.unusable"):
            left.unlink()


@pytest.mark.usefixtures("project")
def test_a_changed_byte_of_data_is_made_good() -> None:
    path, other = Path("data/prepared/digits/x_train.npy"), Path(READERS["partition.npz"][0])
    content, dealt = path.read_bytes(), other.read_bytes()
    for draw in (random.Random(n) for n in range(20 // (1 if PART == 1 else 5))):
        path.write_bytes(flipped(content, draw))
        prepare("digits", "data")
        other.write_bytes(flipped(dealt, draw))
        make_partition(RULE, 0, "data")
        assert (path.read_bytes(), other.read_bytes()) == (content, dealt)


WORDS = [
    "", "~", "-1", "0", "1e400", ".nan", ".inf", "9" * 400, "2023-99-99", "[]", "{}", "[[[[]]]]", "true", "../../x",
    "$(touch harm)", "{x}", "é", "'\\0'", "*a", "&a [*a]", "!!python/object/apply:os.system [touch harm]", "²",
    "- ", "a: b",
]  # fmt: skip


@pytest.mark.usefixtures("project")
def test_odd_configurations_are_cells_or_one_line() -> None:
    files = sorted(Path("config").rglob("*.yaml"))
    texts = {path: path.read_text() for path in files}
    for draw in rounds("configurations"):
        path = draw.choice(files)
        lines = texts[path].splitlines()
        place = draw.randrange(len(lines))
        if draw.random() < 0.3:
            path.write_bytes(flipped(texts[path].encode(), draw))
        else:
            key, colon, _ = lines[place].partition(":")
            lines[place] = f"{key}{colon} {draw.choice(WORDS)}"
            path.write_text("\n".join(lines))
        for paper in ("localscgdam", "climb"):
            said(lambda paper=paper: Plan(configuration.load_config(), paper).cells())  # type: ignore[misc]
        path.write_text(texts[path])
    assert not Path("harm").exists()
