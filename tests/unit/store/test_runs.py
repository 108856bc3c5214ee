"""The run store: whole or absent, whoever writes and whenever they die; damaged runs are noticed and kept apart."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fedbench import files, sealed_json
from fedbench.errors import ReadError, UserError
from fedbench.spec import digest
from fedbench.store import journal
from fedbench.store.record import Record
from fedbench.store.runs import Store

SPEC = {"method": "coda", "seed": 0}
KEY = digest(SPEC)
CURVE: list[dict[str, float]] = [
    {"round": 0, "test_auc": 0.1 + 0.2},
    {"round": 1, "test_auc": 1 / 3, "test_auc_h": 1e-9},
]
CLIENTS: list[dict[str, float | str]] = [{"round": 1, "quantity": "dual", "client0": 0.5}]
RECORD = Record(KEY, SPEC, "finished", "", {"test_auc": 1 / 3, "test_ap": None}, {"commit": "abc"}, {})


def finish(store: Store, clients: Any = CLIENTS) -> Record:
    with store.claim(KEY):
        return store.finish(RECORD, CURVE, clients)


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_finished_run_reads_back_exactly(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "runs")
    assert store.load(KEY) is None and store.keys() == []
    with store.claim(KEY) as folder:
        (folder / "run.json").write_text("{}")
        assert store.load(KEY) is None and store.keys() == [], "an unfinished run is none"
        assert store.checkpoint(KEY).parent == folder
    written = finish(store)
    assert store.load(KEY) == written and written.files.keys() == {"curve.csv", "clients.csv"}
    assert vars(written) | {"files": {}} == vars(RECORD)
    text = (store.path(KEY) / "curve.csv").read_text()
    assert text == "round,test_auc,test_auc_h\n0,0.30000000000000004,\n1,0.3333333333333333,1e-09\n"
    store.checkpoint(KEY).parent.mkdir()
    store.checkpoint(KEY).touch()  # a process was killed before it cleaned up
    store.tidy(KEY)
    assert store.keys() == contents(store.root) == [KEY], "nothing else is left"
    finish(Store(tmp_path / "other"), clients=[])
    assert not (tmp_path / "other" / KEY / "clients.csv").exists()


def test_a_run_whose_folder_was_removed_meanwhile_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    with store.claim(KEY) as folder:
        shutil.rmtree(folder)
        written = store.finish(RECORD, CURVE, CLIENTS)
    assert store.load(KEY) == written and store.unfinished() == []


def test_a_run_imported_while_it_is_trained_is_the_one_that_is_returned(tmp_path: Path) -> None:
    other_store, this_store = Store(tmp_path / "there"), Store(tmp_path / "here")
    with other_store.claim(KEY):
        other_store.finish(Record(**(vars(RECORD) | {"metrics": {"test_auc": 0.9}})), CURVE)
    with this_store.claim(KEY):
        shutil.copytree(other_store.path(KEY), this_store.path(KEY))
        returned = this_store.finish(RECORD, CURVE, CLIENTS)
    assert returned == this_store.load(KEY) and returned.metrics == {"test_auc": 0.9}
    assert contents(this_store.root) == [KEY]


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be")
    store = Store(tmp_path / "results" / "runs")
    with pytest.raises(UserError, match=r"cannot write the run store .*results/runs"), store.claim(KEY):
        pass


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with pytest.raises(UserError, match="no file locks"), Store(tmp_path).claim(KEY):
        pass


def test_claiming_while_the_folder_is_removed_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, removed = Path.mkdir, []

    def mkdir(self: Path, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not removed:
            removed.append(self)
            self.rmdir()  # the process before us, just then

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with Store(tmp_path).claim(KEY) as folder:
        assert (folder / "lock").exists() and removed == [folder]


def test_whoever_waited_behind_a_removed_folder_claims_it_anew(tmp_path: Path) -> None:
    """The lock that was waited for is gone with its folder: holding it would keep nobody out."""
    store, waited = Store(tmp_path), threading.Event()
    inside: list[bool] = []

    def wait() -> None:
        waited.set()
        with store.claim(KEY) as folder:
            inside.append((folder / "lock").exists())

    other = threading.Thread(target=wait)
    with store.claim(KEY) as folder:
        other.start()
        waited.wait()
        time.sleep(0.1)  # it now waits for the lock; were it later, the test would pass all the same
        shutil.rmtree(folder)
    other.join()
    assert inside == [True]


HOLDER = """
import sys, time
from pathlib import Path
from fedbench.store.runs import Store

store = Store(Path(sys.argv[1]))
with store.claim(sys.argv[2]):
    store.checkpoint(sys.argv[2]).write_text("work so far")
    print("claimed", flush=True)
    time.sleep(600)
"""


def test_who_waits_is_told_for_whom_and_a_killed_process_gives_its_claim_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    command = [sys.executable, "-c", HOLDER, tmp_path, KEY]
    with ThreadPoolExecutor() as pool, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "claimed\n"
            waiting = pool.submit(finish, store)
            while not caplog.messages:
                time.sleep(0.01)
            assert caplog.messages[0].startswith(f"run {KEY} is being trained by process {holder.pid} on ")
            assert store.in_training(KEY) and not waiting.done()
            store.tidy(KEY)  # of a run that came from elsewhere: nobody waits for its training
        finally:
            holder.kill()
    assert waiting.result() == store.load(KEY) and not store.in_training(KEY)
    assert contents(store.root) == [KEY]


def test_an_attempt_that_saved_nothing_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), store.claim(KEY) as folder:
        (folder / "progress.json").touch()
        raise ZeroDivisionError
    assert store.unfinished() == []
    with pytest.raises(ZeroDivisionError), store.claim(KEY):
        store.checkpoint(KEY).touch()
        raise ZeroDivisionError
    assert store.unfinished() == [KEY] and not store.in_training(KEY)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one run."""
    finish(Store(tmp_path))
    return Store(tmp_path)


WORDS = "EPYC\x1b[2J"


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
    os.utime(store.path(KEY) / "curve.csv")
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
