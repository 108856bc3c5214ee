"""What the store notices about its runs, and what it leaves behind."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

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
CURVE = [{"round": 0, "test_auc": 0.5}]


def finish(store: Store, record: Record = RECORD) -> Record:
    with store.claim(record.key):
        return store.finish(record, CURVE)


def edit(store: Store, **changes: object) -> None:
    path = store.path(KEY) / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": {"test_auc": 0.6}},
        {"status": "diverged"},
        {"provenance": {}},
        {"spec": SPEC | {"seed": 1}},
    ],
)
def test_a_changed_record_is_noticed(changes: dict[str, object], tmp_path: Path) -> None:
    store = Store(tmp_path)
    finish(store)
    edit(store, **changes)
    with pytest.raises(
        UserError, match=r"is damaged \(run\.json is not what was written\).*store verify --set-aside"
    ):
        store.load(KEY)


def test_a_record_whose_specification_is_another_runs_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finish(store)
    facts = sealed_json.read(store.path(KEY) / "run.json")
    sealed_json.write(store.path(KEY) / "run.json", facts | {"spec": SPEC | {"seed": 1}})
    with pytest.raises(UserError, match="its specification is that of the run"):
        store.load(KEY)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spec": [1, 2]}, "spec: Input should be a valid dictionary"),
        ({"spec": SPEC | {"seed": -5}}, "its seed is not a whole number"),
        ({"spec": SPEC | {"data": {"dataset": 3}}}, "its method or dataset is not a name"),
        ({"status": ["x"]}, "status: Input should be a valid string"),
        ({"metrics": {"test_auc": "abc"}}, "metrics.test_auc"),
        ({"metrics": {"test_auc": math.nan}}, "metrics.test_auc"),
        ({"metrics": {"test_auc": True}}, "metrics.test_auc"),
        ({"provenance": {"versions": [1]}}, "provenance"),
        ({"provenance": {"seconds": "long"}}, "provenance"),
        ({"provenance": {"evaluation_seconds": [0.1, "long"]}}, "provenance"),
        ({"provenance": {"curve_seconds": [0.1, "long"]}}, "provenance"),
        ({"files": {"../../x": "0" * 64}}, "files"),
        ({"key": "../x"}, "key"),
        ({"more": 1}, "more: Unexpected"),
    ],
)
def test_a_sealed_record_of_the_wrong_kind_is_damaged(
    changes: dict[str, object], says: str, tmp_path: Path
) -> None:
    """Whoever makes a run by hand can give it a checksum too."""
    store = Store(tmp_path)
    finish(store)
    path = store.path(KEY) / "run.json"
    sealed_json.write(path, sealed_json.read(path) | changes)
    with pytest.raises(UserError, match="is damaged") as caught:
        store.load(KEY)
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
@pytest.mark.parametrize("name", ["run.json", "curve.csv"])
def test_a_run_that_cannot_be_read_now_is_not_damaged(
    code: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = Store(tmp_path), Path.read_bytes
    written = finish(store)

    def fails(path: Path) -> bytes:
        if path.name == name:
            raise OSError(code, os.strerror(code), str(path))
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        with pytest.raises(ReadError, match=r"It is kept"):
            store.load(KEY)
    assert store.load(KEY) == written


def test_an_unchanged_run_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, read, count = Store(tmp_path), Path.read_bytes, 0
    finish(store)

    def counted(path: Path) -> bytes:
        nonlocal count
        count += 1
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    assert store.load(KEY) == store.load(KEY) and count == 2
    os.utime(store.curve(KEY))
    store.load(KEY)
    assert count == 3, "the curve"


def test_damaged_runs_that_are_set_aside_are_kept_apart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in (1, 2):
        finish(store)
        assert store.set_aside(KEY) == tmp_path / f"{KEY}.damaged{number}"
    assert store.keys() == store.keys(damaged=True) == [] and store.load(KEY) is None
    store.path(KEY).mkdir()  # its record is gone
    assert store.keys(damaged=True) == [KEY] and store.keys() == [] and not store.has(KEY)


def test_what_a_killed_process_left_of_a_finished_run_is_tidied_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finish(store)
    left = store.checkpoint(KEY)
    left.parent.mkdir()
    left.touch()
    store.tidy(KEY)
    assert [path.name for path in tmp_path.iterdir()] == [KEY]
    store.tidy(KEY)


def test_who_finds_a_run_that_came_from_elsewhere_does_not_wait_for_its_training(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finish(store)
    with store.claim(KEY):
        tidying = threading.Thread(target=store.tidy, args=(KEY,), daemon=True)
        tidying.start()
        tidying.join(60)
        assert not tidying.is_alive() and store.unfinished() == [KEY]


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


def test_who_waits_is_told_for_whom(tmp_path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        from fedbench.store.runs import Store
        with Store(Path(sys.argv[1])).claim(sys.argv[2]):
            pass
    """
    store = Store(tmp_path)
    with store.claim(KEY):
        assert store.in_training(KEY)
        command = [sys.executable, "-c", textwrap.dedent(code), tmp_path, KEY]
        waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
    assert waiting.wait() == 0
    assert said.startswith(f"run {KEY} is being trained by process {os.getpid()} on ")


def test_nobody_waits_in_silence_for_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Store(tmp_path).claim(KEY):
        pass
    assert caplog.messages == []


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedbench import files

    def flock(descriptor: int, how: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with (
        pytest.raises(UserError, match=r"no file locks \(Function not implemented\)"),
        Store(tmp_path).claim(KEY),
    ):
        pass


def test_the_journal_survives_torn_lines_and_full_disks(tmp_path: Path) -> None:
    assert journal.read_journal(tmp_path) == []
    journal.note(tmp_path, "begun", KEY)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"time": "2026-\n')
    journal.note(tmp_path, "finished", KEY)
    assert [(line["event"], line["key"]) for line in journal.read_journal(tmp_path)] == [
        ("begun", KEY),
        ("finished", KEY),
    ]
    journal.note(tmp_path / "gone", "finished", KEY)
