"""Each process has a GPU of its own. The cards are pretended: a `nvidia-smi` that lists them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.train import gpus

TAKE = """
import sys
from pathlib import Path
from fedbench.train import gpus
print("card", gpus.take(Path(sys.argv[1])), flush=True)
sys.stdin.read()  # keeps it until told to end
"""
TWO = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaaa)
GPU 1: NVIDIA H200 (UUID: GPU-bbbb)
"""


class Machine:
    """A machine with pretended cards, and the processes started on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name != gpus.VISIBLE}
        self.processes: list[subprocess.Popen[str]] = []

    def install(self, listing: str, status: int = 0) -> None:
        """Put the cards in: what `nvidia-smi -L` says of them."""
        program = self.folder / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{listing}END\nexit {status}\n")
        program.chmod(0o755)
        self.environment["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """Start a process that takes a card and keeps it."""
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE, self.folder], env=self.environment | environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.processes.append(process)
        return process


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine without cards; its processes end with the test."""
    machine = Machine(tmp_path)
    machine.install("", status=9)
    yield machine
    for process in machine.processes:
        process.kill()
        process.communicate()


def test_processes_never_share_a_card_and_the_next_one_waits_for_a_free_one(machine: Machine) -> None:
    machine.install(TWO)
    first, second = machine.start(), machine.start()
    taken = [line(first), line(second)]
    assert sorted(taken) == ["card GPU-aaaa", "card GPU-bbbb"]
    third = machine.start()
    assert line(third) == "waiting for a GPU: all 2 are in use by other runs"
    first.kill()  # even a killed process gives its card back
    assert line(third) == taken[0]


def test_a_card_that_was_given_is_used_as_it_is(machine: Machine) -> None:
    assert line(machine.start()) == "card None", "there is none to take"
    machine.install(TWO)
    shared = [machine.start(CUDA_VISIBLE_DEVICES=given) for given in ("1", "1,")]
    assert [line(process) for process in shared] == ["card None"] * 2
    assert line(machine.start(CUDA_VISIBLE_DEVICES="")) == "card None", "no card at all was wanted"


def test_of_several_given_cards_each_process_takes_one(machine: Machine) -> None:
    machine.install(TWO + "GPU 2: NVIDIA H200 (UUID: GPU-cccc)\n")
    given = [machine.start(CUDA_VISIBLE_DEVICES="1,2") for _ in range(2)]
    assert {line(process) for process in given} == {"card 1", "card 2"}
    assert line(machine.start()) == "card GPU-aaaa", "the same cards by their other names are not free"
    unlisted = machine.start(CUDA_VISIBLE_DEVICES="GPU-bbbb,9")
    assert line(unlisted) == "card 9", "what the driver does not list is for CUDA to refuse"


def test_a_divided_card_counts_as_its_parts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install(
        "GPU 0: NVIDIA H200 (UUID: GPU-aaaa)\n"
        "  MIG 3g.71gb     Device  0: (UUID: MIG-1111)\n"
        "  MIG 3g.71gb     Device  1: (UUID: MIG-GPU-aaaa/2/0)\n"
        "GPU 1: NVIDIA H200 (UUID: GPU-bbbb)\n"
    )
    monkeypatch.setenv("PATH", machine.environment["PATH"])
    assert gpus.installed() == ["MIG-1111", "MIG-GPU-aaaa/2/0", "GPU-bbbb"]
    taken = [line(machine.start()) for _ in range(3)]
    assert taken == ["card MIG-1111", "card MIG-GPU-aaaa/2/0", "card GPU-bbbb"]


def test_a_folder_of_locks_that_is_not_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"fedbench-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    monkeypatch.setattr(gpus, "installed", lambda: ["GPU-aaaa"])
    with pytest.raises(UserError, match="belongs to another user"):
        gpus.take(tmp_path)
