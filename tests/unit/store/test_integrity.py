"""What the store notices about its runs, and what becomes of damaged ones."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedbench import sealed_json
from fedbench.errors import ReadError, UserError
from fedbench.spec import digest
from fedbench.store import journal
from fedbench.store.record import Record
from fedbench.store.runs import Store

SPEC = {"method": "coda", "seed": 0}
KEY = digest(SPEC)
RECORD = Record(KEY, SPEC, "finished", "", {"test_auc": 0.5}, {"seconds": 1.0}, {})
WORDS = "EPYC\x1b[2J"
CURVE = [{"round": 0, "test_auc": 0.5}]


def finish(store: Store, record: Record = RECORD) -> Record:
    with store.claim(record.key):
        return store.finish(record, CURVE, CURVE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one run."""
    finish(Store(tmp_path))
    return Store(tmp_path)


def edited(**changes: object) -> Callable[[Path], Any]:
    """Return an edit of a record by hand, which leaves its checksum."""
    return lambda run: (run / "run.json").write_text(
        json.dumps(json.loads((run / "run.json").read_text()) | changes)
    )


def sealed(**changes: object) -> Callable[[Path], Any]:
    """Return an edit of a record with a right checksum: whoever makes a run by hand can give it one too."""
    return lambda run: sealed_json.write(run / "run.json", sealed_json.read(run / "run.json") | changes)


def written(name: str, content: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
        (lambda folder: (folder / "curve.csv").unlink(), "curve.csv is missing"),
        (written("run.json", '{"key": '), "Expecting value"),
        (written("run.json", "{}"), "has no checksum"),
        (written("run.json", "[" * 100_000), "nested too deeply"),
        (written("curve.csv", "round\n0\n"), "curve.csv is not what was written"),
        (written("clients.csv", ""), "clients.csv is not what was written"),
        (edited(metrics={"test_auc": 0.6}), "run.json is not what was written"),
        (sealed(spec=SPEC | {"seed": 1}), "its specification is that of the run"),
        (sealed(spec=[1, 2]), "spec: Input should be a valid dictionary"),
        (sealed(spec=SPEC | {"seed": -5}), "its seed is not a whole number"),
        (sealed(spec=SPEC | {"data": {"dataset": 3}}), "its method or dataset is not a name"),
        (sealed(status=["x"]), "status: Input should be a valid string"),
        (sealed(metrics={"test_auc": math.nan}), "metrics.test_auc"),
        (sealed(metrics={"test_auc": True}), "metrics.test_auc"),
        (sealed(provenance={"versions": [1]}), "provenance"),
        (sealed(provenance={"seconds": "long"}), "provenance"),
        (sealed(provenance={"evaluation_seconds": [0.1, "long"]}), "provenance"),
        (sealed(files={"../../x": "0" * 64}), "files"),
        (sealed(key="../x"), "key"),
        (sealed(more=1), "more: Unexpected"),
        (sealed(facts={"test_auc": {"odd": 1.0}}), "its facts hold odd: 1.0"),
        (sealed(facts={"test_auc": {"sign": 1.0}}), "its facts hold sign: 1.0"),
        (sealed(reason=WORDS), "control characters"),
        (sealed(provenance={"commit": WORDS}), "control characters"),
        (sealed(provenance={"versions": {"numpy": WORDS}}), "control characters"),
        (sealed(facts={"test_auc": {"sign": WORDS}}), "control characters"),
    ],
)
def test_a_damaged_run_is_named_with_the_cure(damage: Callable[[Path], Any], says: str, store: Store) -> None:
    damage(store.path(KEY))
    with pytest.raises(UserError, match="is damaged") as caught:
        store.load(KEY)
    said = str(caught.value)
    assert says in said and str(store.path(KEY)) in said and "store verify --set-aside" in said
    assert said.isprintable()
    shutil.rmtree(store.path(KEY))
    assert finish(store) == store.load(KEY)


@pytest.mark.parametrize(
    ("code", "name"), [(errno.EACCES, "run.json"), (errno.EIO, "curve.csv"), (errno.ESTALE, "run.json")]
)
def test_a_run_that_cannot_be_read_now_is_not_damaged(
    code: int, name: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def fails(path: Path) -> bytes:
        if path.name == name:
            raise OSError(code, os.strerror(code), str(path))
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        with pytest.raises(ReadError, match=r"It is kept"):
            store.load(KEY)
    assert store.load(KEY) is not None


def test_an_unchanged_run_is_checked_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read, names = Path.read_bytes, list[str]()
    monkeypatch.setattr(Path, "read_bytes", lambda path: names.append(path.name) or read(path))
    assert store.load(KEY) == store.load(KEY)
    assert sorted(names) == ["clients.csv", "curve.csv", "run.json"]
    os.utime(store.curve(KEY))
    store.load(KEY)
    assert sorted(names[3:]) == ["clients.csv", "curve.csv"], "not the record"


def test_damaged_runs_that_are_set_aside_are_kept_apart(store: Store) -> None:
    for number in (1, 2):
        assert store.set_aside(KEY) == store.root / f"{KEY}.damaged{number}"
        assert store.keys() == store.keys(damaged=True) == [] and store.load(KEY) is None
        finish(store)
    (store.path(KEY) / "run.json").unlink()
    assert store.keys(damaged=True) == [KEY] and store.keys() == [] and not store.has(KEY)


def test_the_journal_survives_torn_lines_and_full_disks(tmp_path: Path) -> None:
    assert journal.read_journal(tmp_path) == []
    journal.note(tmp_path, "begun", KEY)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"time": "2026-\n')
    journal.note(tmp_path, "finished", KEY)
    events = [(line["event"], line["key"]) for line in journal.read_journal(tmp_path)]
    assert events == [("begun", KEY), ("finished", KEY)]
    journal.note(tmp_path / "gone", "finished", KEY)
