"""A GPU for each process, and locks of dead workflows and files from the future.

The cards are pretended: a `nvidia-smi` that lists them. A lock keeps out whoever has opened its file apart, so that
calls of one process stand for several processes here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedbench.errors import UserError, WriteError
from fedbench.train import gpus, stale_locks
from fedbench.train.stale_locks import release_stale_lock, settle_clock

TWO = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaaa)
GPU 1: NVIDIA H200 (UUID: GPU-bbbb)
"""
Install, Take = Callable[[str], None], Callable[..., str | None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put cards into the machine: what `nvidia-smi -L` says of them. What was taken is given back at the end."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def put(listing: str, status: int = 0) -> None:
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{listing}END\nexit {status}\n")
        program.chmod(0o755)

    before = len(gpus._held)
    put("", status=9)
    yield put
    for lock in gpus._held[before:]:
        lock.close()
    del gpus._held[before:]


@pytest.fixture
def take(tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Take a card as a new process does that was given some."""

    def taken(given: str | None = None) -> str | None:
        monkeypatch.delenv(gpus.VISIBLE, raising=False)
        if given is not None:
            monkeypatch.setenv(gpus.VISIBLE, given)
        card = gpus.take(tmp_path)
        assert os.environ.get(gpus.VISIBLE) == (card or given)
        return card

    return taken


def test_nobody_shares_a_card_and_the_next_one_waits_for_a_free_one(
    install: Install, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(TWO)
    said, third = list[str](), list[str | None]()
    assert [take(), take()] == ["GPU-aaaa", "GPU-bbbb"]
    monkeypatch.setattr(gpus, "say", lambda text: [said.append(text), gpus._held[-2].close()])
    waiting = threading.Thread(target=lambda: third.append(take()))
    waiting.start()
    waiting.join()
    assert said == ["  waiting for a GPU: all 2 are in use by other runs"] and third == ["GPU-aaaa"]


def test_a_card_that_was_given_is_used_as_it_is(install: Install, take: Take) -> None:
    assert take() is None, "there is none to take"
    install(TWO)
    assert [take(given) for given in ("1", "1,", "")] == [None] * 3, "and none at all may be wanted"


def test_of_several_given_cards_each_takes_one(install: Install, take: Take) -> None:
    install(TWO + "GPU 2: NVIDIA H200 (UUID: GPU-cccc)\n")
    assert [take("1,2"), take("1,2")] == ["1", "2"]
    assert take() == "GPU-aaaa", "the same cards by their other names are not free"
    assert take("GPU-bbbb,9") == "9", "what the driver does not list is for CUDA to refuse"


def test_a_divided_card_counts_as_its_parts(install: Install, take: Take) -> None:
    install(
        "GPU 0: NVIDIA H200 (UUID: GPU-aaaa)\n"
        "  MIG 3g.71gb     Device  0: (UUID: MIG-1111)\n"
        "  MIG 3g.71gb     Device  1: (UUID: MIG-GPU-aaaa/2/0)\n"
        "GPU 1: NVIDIA H200 (UUID: GPU-bbbb)\n"
    )
    parts = ["MIG-1111", "MIG-GPU-aaaa/2/0", "GPU-bbbb"]
    assert gpus.installed() == parts == [take() for _ in parts]


def test_a_folder_of_locks_that_is_not_ours_is_refused(tmp_path: Path, install: Install, take: Take) -> None:
    install(TWO)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"fedbench-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="belongs to another user"):
        take()


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
        assert "another workflow is at work" in said and "wait for it, or stop it" in said
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
