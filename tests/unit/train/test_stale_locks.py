"""Locks of dead workflows and files from the future."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.errors import WriteError
from fedbench.train import stale_locks
from fedbench.train.stale_locks import release_stale_lock, settle_clock


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder as Snakemake leaves it when it is killed; what this process holds of it is given up at the end."""
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").write_text("tables/table1.tex\n")
    before = len(stale_locks._held)
    yield tmp_path / ".snakemake"
    for held in stale_locks._held[before:]:
        held.close()
    del stale_locks._held[before:]


def other(folder: Path) -> subprocess.Popen[str]:
    """Start a process that works in the folder until it is told to end."""
    code = """
        import sys
        from pathlib import Path
        from fedbench.train.stale_locks import release_stale_lock
        print(release_stale_lock(Path(sys.argv[1])), flush=True)
        sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() in ("True\n", "False\n")
    return process


def locks(folder: Path) -> list[Path]:
    return list(folder.glob("locks/*"))


def test_the_lock_of_a_living_workflow_stays_and_goes_with_the_last(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    living = [other(folder), other(folder)]
    (folder / "locks").mkdir(exist_ok=True)
    (folder / "locks" / "0.output.lock").write_text("x")
    while living:
        assert release_stale_lock(folder) is False and len(locks(folder)) == 1
        said = capsys.readouterr().err
        assert "another workflow is at work" in said
        assert {str(process.pid) for process in living} <= {*re.findall(r"\d+", said)}
        stale_locks._held.pop().close()
        dead = living.pop()
        dead.kill()
        dead.wait()
    assert release_stale_lock(folder) is True and locks(folder) == []
    assert (folder / "fedbench.lock").read_text().split()[1::2] == [str(os.getpid())]


def test_a_lock_that_another_host_may_hold_stays(folder: Path) -> None:
    (folder / "fedbench.lock").write_text("elsewhere 17\n")
    assert release_stale_lock(folder) is False and len(locks(folder)) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"cannot write .*file/\.snakemake"):
        release_stale_lock(tmp_path / "file" / ".snakemake")


def test_files_from_the_future_come_back_in_their_order(tmp_path: Path) -> None:
    now, year = time.time(), 365 * 86400.0
    times = {"raw": now + year, "made": now + year + 1, "old": now - 100, "skewed": now + 10}
    times["late"] = now + 2 * year
    for name, when in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (when, when))
    moved = settle_clock([*tmp_path.iterdir(), tmp_path / "gone"], now)
    assert [path.name for path in moved] == ["raw", "made", "late"]
    names = {name: (tmp_path / name).stat().st_mtime for name in times}
    assert now - 1 < names["raw"] < names["made"] < names["late"] <= now
    assert (names["old"], names["skewed"]) == pytest.approx((times["old"], times["skewed"]))
    assert settle_clock(tmp_path.iterdir(), now) == []
