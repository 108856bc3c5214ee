"""Disks that are full, read-only or limited: a clear message, nothing half-written, and work goes on where it can."""

from __future__ import annotations

import logging
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_worker import short_run
from victims import Disk

from fedbench import files
from fedbench.data.prepared import prepare, prepared_path
from fedbench.errors import WriteError
from fedbench.spec import RunSpec
from fedbench.store import journal
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train.training import train_run
from projects import Project

LARGE = short_run(hidden=500)  # its checkpoint takes 150 kB, its results 5


def train(
    store: Store, data: Path, run: RunSpec = LARGE, on_round: Callable[..., None] = lambda progress: None
) -> bytes:
    """Train a run with a checkpoint after each round; return its curve."""
    train_run(run, Config(device="cpu", checkpoint_seconds=0, data_dir=str(data)), store, on_round)
    return (store.path(run.key) / "curve.csv").read_bytes()


@pytest.fixture
def undisturbed(digits: Path, tmp_path: Path) -> bytes:
    """The curve of the large run on a roomy disk."""
    return train(Store(tmp_path / "roomy"), digits)


def test_without_room_for_checkpoints_a_run_still_finishes(
    disk: Disk, digits: Path, undisturbed: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(disk.path / "runs")
    disk.fill(leave=80_000)
    with caplog.at_level(logging.WARNING):
        assert train(store, digits) == undisturbed
    warnings = [message for message in caplog.messages if "training goes on" in message]
    assert len(warnings) == 1 and "checkpoint.pt (No space left on device)" in warnings[0]
    assert sorted(path.name for path in store.root.iterdir()) == [LARGE.key, journal.NAME]


def test_a_disk_that_is_full_when_a_run_ends_costs_no_more_than_the_last_checkpoint(
    disk: Disk, digits: Path, undisturbed: bytes
) -> None:
    store, rounds = Store(disk.path / "runs"), list[int]()
    with pytest.raises(WriteError) as caught:
        train(store, digits, on_round=lambda progress: disk.fill() if progress.round == 2 else None)
    message, checkpointed = str(caught.value), store.checkpoint(LARGE.key)
    assert str(store.path(LARGE.key)) in message and "No space left on device; free some space" in message
    assert store.keys() == [] and store.load(LARGE.key) is None
    assert checkpointed.exists() and not (checkpointed.parent / "ready").exists()
    disk.free()
    assert train(store, digits, on_round=lambda progress: rounds.append(progress.round)) == undisturbed
    assert rounds == [2]


def test_a_read_only_store_gives_what_it_has_and_says_why_it_takes_nothing(disk: Disk, digits: Path) -> None:
    store, other = Store(disk.path / "runs"), short_run(seed=1)
    before = train(store, digits)
    disk.writable(False)
    assert train(store, digits) == before
    with pytest.raises(WriteError, match=r"cannot write the run store .*Read-only file system; mount"):
        train(store, digits, other)
    disk.writable(True)
    train(store, digits, other)
    assert store.keys() == sorted([LARGE.key, other.key])


def test_a_workflow_begins_on_no_read_only_disk_and_goes_on_once_there_is_room(
    disk: Disk, built: Project
) -> None:
    for folder in ("results", "logs"):
        shutil.rmtree(built.root / folder)
    (built.root / "results").symlink_to(disk.path)
    with built.edit("config/papers/localscgdam.yaml") as paper:
        paper["tables"]["table1"]["methods"] = ["LocalSGDAM", "LocalSGDM", "CoDA"]
        paper["figures"] = {}
    disk.writable(False)
    said = built.snakemake("tables/table1.tex", fails=True)
    assert re.search(r"error: cannot write .*results.*: Read-only file system; mount its disk writable", said)
    assert not (built.root / "logs").exists(), "no job was begun"
    disk.writable(True)
    disk.fill(leave=16_000)  # a small file fits, a result does not
    said = built.snakemake("tables/table1.tex", "--cores", "1", fails=True)
    assert re.search(r"error: cannot write .* results/runs.*: No space left on device; free some space", said)
    assert "Traceback" not in said and not list(disk.path.glob("**/run.json"))
    disk.free()
    disk.fill()
    command = [built.programs / "fedbench", "run", "Digits/p4_imratio0.1/LocalSGDM"]
    with (disk.path / "log").open("w") as log:  # not even its own words have room
        done = subprocess.run(
            command, cwd=built.root, stdout=log, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "free some space" in done.stderr
    disk.free()
    built.snakemake("tables/table1.tex")
    assert len(built.runs()) == 6 and {row["status"] for row in built.table().values()} == {"finished"}


def test_preparing_data_on_a_full_disk_leaves_nothing_half(disk: Disk) -> None:
    disk.fill(leave=30_000)
    with pytest.raises(WriteError, match=r"cannot write .*x_train\.npy: No space left on device"):
        prepare("digits", disk.path)
    assert not prepared_path("digits", disk.path).exists()
    assert not [*(disk.path / "prepared/digits").iterdir()]
    disk.free()
    prepare("digits", disk.path)
    assert prepared_path("digits", disk.path).is_file()


def test_files_may_be_limited_in_size(tmp_path: Path) -> None:
    """The way of a full disk that needs no root."""
    files.write(tmp_path / "table.csv", "old")
    before, old = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(WriteError, match=r"table\.csv: File too large; raise the limit"):
            files.write(tmp_path / "table.csv", "new" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("table.csv", "old")]
