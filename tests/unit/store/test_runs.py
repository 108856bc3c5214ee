"""The run store: whole or absent, whoever writes and whenever they die."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedbench import files
from fedbench.errors import UserError
from fedbench.spec import digest
from fedbench.store import runs
from fedbench.store.record import Record
from fedbench.store.runs import Store

SPEC = {"seed": 0}
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
    text = store.curve(KEY).read_text()
    assert text == "round,test_auc,test_auc_h\n0,0.30000000000000004,\n1,0.3333333333333333,1e-09\n"
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


@pytest.mark.parametrize("step", range(4))
def test_dying_while_writing_leaves_no_run_and_the_next_one_succeeds(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps: the curve, the clients, the record, the rename."""
    store, count = Store(tmp_path), 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def act(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count == step + 1:
                raise KeyboardInterrupt
            return original(*args)

        return act

    monkeypatch.setattr(runs, "_write", counted(runs._write))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    with pytest.raises(KeyboardInterrupt):
        finish(store)
    monkeypatch.undo()
    assert count == step + 1 and store.load(KEY) is None and store.keys() == []
    assert finish(store, clients=[]) == store.load(KEY)
    assert contents(tmp_path) == [KEY] and contents(store.path(KEY)) == ["curve.csv", "run.json"]


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


BEGINNING = """
import sys, time
from pathlib import Path
from fedbench.store.record import Record
from fedbench.store.runs import Store

name, root, key = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
store = Store(root / "runs")
"""
WORKER = """
(root / f"ready{name}").touch()
while not (root / "go").exists():
    time.sleep(0.005)
with store.claim(key), (root / "log").open("a", buffering=1) as log:
    print(name, "in", file=log)
    if store.load(key) is None:
        time.sleep(0.2)
        store.finish(Record(key, {"seed": 0}, "finished", "", {}, {"by": name}, {}), [{"round": 0}])
        print(name, "trained", file=log)
"""
HOLDER = """
with store.claim(key) as folder:
    (folder / "checkpoint.pt").write_text("work so far")
    (root / "claimed").touch()
    time.sleep(600)
"""


def start(name: str, root: Path, code: str = WORKER) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BEGINNING + textwrap.dedent(code), name, root, KEY]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for(*paths: Path) -> None:
    for _ in range(3000):
        if all(path.exists() for path in paths):
            return
        time.sleep(0.01)
    raise AssertionError(f"{paths} did not come")


def test_processes_that_want_the_same_run_train_it_once(tmp_path: Path) -> None:
    workers = [start(name, tmp_path) for name in "abc"]
    wait_for(*(tmp_path / f"ready{name}" for name in "abc"))
    (tmp_path / "go").touch()
    said = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], said
    lines = (tmp_path / "log").read_text().splitlines()
    winner = lines[0][0]
    assert lines[1] == f"{winner} trained", "nobody came in while it trained"
    assert sorted(lines) == sorted([*(f"{name} in" for name in "abc"), lines[1]])
    result = Store(tmp_path / "runs").load(KEY)
    assert result is not None and result.provenance == {"by": winner}
    assert contents(tmp_path / "runs") == [KEY]


def test_who_waits_is_told_for_whom_and_a_killed_process_gives_its_claim_up(tmp_path: Path) -> None:
    holder = start("first", tmp_path, HOLDER)
    try:
        wait_for(tmp_path / "claimed")
        store = Store(tmp_path / "runs")
        assert store.in_training(KEY)
        (tmp_path / "go").touch()
        waiting = start("second", tmp_path)
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
        assert said.startswith(f"run {KEY} is being trained by process {holder.pid} on ")
        store.tidy(KEY)  # of a run that came from elsewhere: nobody waits for its training
    finally:
        holder.kill()
        holder.communicate()
    assert waiting.communicate()[1] == "" and waiting.returncode == 0
    assert store.keys() == [KEY] and not store.in_training(KEY)


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


def test_what_a_killed_process_left_of_a_finished_run_is_tidied_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finish(store)
    store.checkpoint(KEY).parent.mkdir()
    store.checkpoint(KEY).touch()
    store.tidy(KEY)
    assert contents(tmp_path) == [KEY]
