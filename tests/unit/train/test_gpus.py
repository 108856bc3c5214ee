"""Each process has a GPU of its own. The cards are pretended: a `nvidia-smi` that lists them.

A lock keeps out whoever has opened its file apart, so that calls of one process stand for several processes here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.train import gpus

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
