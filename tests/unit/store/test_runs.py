"""The run store: whole or absent, whoever writes and whenever they die."""

from __future__ import annotations

import math
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

from fedbench.errors import UserError
from fedbench.spec import digest
from fedbench.store import runs
from fedbench.store.record import Record
from fedbench.store.runs import Store, csv_text

SPEC = {"seed": 0}
KEY = digest(SPEC)
CURVE: list[dict[str, float]] = [
    {"round": 0, "test_auc": 0.1 + 0.2},
    {"round": 1, "test_auc": 1 / 3, "test_auc_h": 1e-9},
]
CLIENTS: list[dict[str, float | str]] = [{"round": 1, "quantity": "dual", "client0": 0.5}]


def record(key: str = KEY) -> Record:
    return Record(key, SPEC, "finished", "", {"test_auc": 1 / 3, "test_ap": None}, {"commit": "abc"}, {})


def finish(store: Store, clients: Any = CLIENTS) -> Record:
    with store.claim(KEY):
        return store.finish(record(), CURVE, clients)


def test_a_finished_run_reads_back_exactly(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "runs")
    assert store.load(KEY) is None and store.keys() == []
    written = finish(store)
    assert store.load(KEY) == written and written.files.keys() == {"curve.csv", "clients.csv"}
    assert vars(written) | {"files": {}} == vars(record())
    assert store.keys() == [KEY]
    text = store.curve(KEY).read_text()
    assert text == "round,test_auc,test_auc_h\n0,0.30000000000000004,\n1,0.3333333333333333,1e-09\n"
    assert sorted(path.name for path in store.root.iterdir()) == [KEY]  # nothing else is left
    finish(Store(tmp_path / "other"), clients=[])
    assert not (tmp_path / "other" / KEY / "clients.csv").exists()


def test_a_run_whose_folder_was_removed_meanwhile_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    with store.claim(KEY) as folder:
        shutil.rmtree(folder)
        written = store.finish(record(), CURVE, CLIENTS)
    assert store.load(KEY) == written and store.unfinished() == []


def test_a_run_imported_while_it_is_trained_is_the_one_that_is_returned(tmp_path: Path) -> None:
    other_store, this_store = Store(tmp_path / "there"), Store(tmp_path / "here")
    with other_store.claim(KEY):
        other_store.finish(Record(**(vars(record()) | {"metrics": {"test_auc": 0.9}})), CURVE)
    with this_store.claim(KEY):
        shutil.copytree(other_store.path(KEY), this_store.path(KEY))
        returned = this_store.finish(record(), CURVE, CLIENTS)
    assert returned == this_store.load(KEY) and returned.metrics == {"test_auc": 0.9}
    assert sorted(path.name for path in this_store.root.iterdir()) == [KEY]


def test_floats_survive_csv_exactly() -> None:
    values = [0.1, 1 / 3, 1e-300, math.pi, 12345678.9, float("nan")]
    lines = csv_text([{"x": value} for value in values]).splitlines()[1:]
    assert [float(line) for line in lines[:-1]] == values[:-1] and math.isnan(float(lines[-1]))


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
                if len(args) == 2 and isinstance(args[1], bytes):
                    args[0].write_bytes(args[1][: len(args[1]) // 2])
                raise KeyboardInterrupt
            return original(*args)

        return act

    monkeypatch.setattr(runs, "_write", counted(runs._write))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    with pytest.raises(KeyboardInterrupt):
        finish(store)
    monkeypatch.undo()
    assert count == step + 1
    assert store.load(KEY) is None and store.keys() == []
    assert finish(store, clients=[]) == store.load(KEY)
    assert sorted(path.name for path in store.root.iterdir()) == [KEY]
    assert sorted(path.name for path in store.path(KEY).iterdir()) == ["curve.csv", "run.json"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
        (lambda folder: (folder / "run.json").write_text('{"key": '), "Expecting value"),
        (lambda folder: (folder / "run.json").write_text("{}"), "has no checksum"),
        (lambda folder: (folder / "run.json").write_text("[1]"), "no JSON object"),
        (lambda folder: (folder / "run.json").write_text("[" * 100_000), "nested too deeply"),
        (lambda folder: (folder / "curve.csv").write_text("round\n0\n"), "curve.csv is not what was written"),
        (lambda folder: (folder / "curve.csv").unlink(), "curve.csv is missing"),
        (lambda folder: (folder / "clients.csv").write_bytes(b""), "clients.csv is not what was written"),
    ],
)
def test_a_damaged_run_is_named_with_the_cure(
    damage: Callable[[Path], Any], says: str, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    finish(store)
    damage(store.path(KEY))
    with pytest.raises(UserError) as caught:
        store.load(KEY)
    message = str(caught.value)
    assert says in message and str(store.path(KEY)) in message and "fedbench store verify" in message
    shutil.rmtree(store.path(KEY))
    assert finish(store) == store.load(KEY)


def test_unfinished_runs_are_no_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.claim(KEY) as folder:
        (folder / "run.json").write_text("{}")
        assert store.load(KEY) is None and store.keys() == []
        assert store.checkpoint(KEY).parent == folder


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be")
    store = Store(tmp_path / "results" / "runs")
    with pytest.raises(UserError, match=r"cannot write the run store .*results/runs"), store.claim(KEY):
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


WORKER = """
    import sys, time
    from pathlib import Path
    from fedbench.store.record import Record
    from fedbench.store.runs import Store

    name, root, key = sys.argv[1:]
    store, log = Store(Path(root) / "runs"), Path(root) / "log"
    (Path(root) / f"ready{name}").touch()
    while not (Path(root) / "go").exists():
        time.sleep(0.005)
    with store.claim(key):
        with log.open("a") as file:
            file.write(f"{name} in\\n")
        if store.load(key) is None:
            time.sleep(0.2)
            store.finish(Record(key, {"seed": 0}, "finished", "", {}, {"by": name}, {}), [{"round": 0}])
            with log.open("a") as file:
                file.write(f"{name} trained\\n")
"""


def start(name: str, root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(WORKER), name, str(root), KEY])


def wait_for(*paths: Path) -> None:
    for _ in range(3000):
        if all(path.exists() for path in paths):
            return
        time.sleep(0.01)
    raise AssertionError(f"{paths} did not come")


def test_processes_that_want_the_same_run_train_it_once(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    workers = [start(name, tmp_path) for name in names]
    wait_for(*(tmp_path / f"ready{name}" for name in names))
    (tmp_path / "go").touch()
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    lines = (tmp_path / "log").read_text().splitlines()
    assert sum(line.endswith("trained") for line in lines) == 1
    assert sorted(line[0] for line in lines if line.endswith("in")) == ["a", "b", "c"]
    winner = lines[0][0]
    assert lines[1] == f"{winner} trained"  # nobody came in while it trained
    result = Store(tmp_path / "runs").load(KEY)
    assert result is not None and result.provenance == {"by": winner}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [KEY]


def test_a_killed_process_gives_its_claim_up(tmp_path: Path) -> None:
    code = """
        import os, sys, time
        from pathlib import Path
        from fedbench.store.runs import Store

        with Store(Path(sys.argv[1]) / "runs").claim(sys.argv[2]) as folder:
            (folder / "checkpoint.pt").write_text("work so far")
            (Path(sys.argv[1]) / "claimed").touch()
            time.sleep(600)
    """
    holder = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path), KEY])
    try:
        wait_for(tmp_path / "claimed")
        import fcntl

        with (
            (tmp_path / "runs" / f"{KEY}.unfinished" / "lock").open("w") as lock,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        holder.kill()
        holder.wait()
    with Store(tmp_path / "runs").claim(KEY) as folder:
        assert (folder / "checkpoint.pt").read_text() == "work so far"
