"""How many jobs train at a time on one machine: with one card, with two, with none. The cards are pretended."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from projects import OWN, Project

CARDS = ("GPU-pretended-a", "GPU-pretended-b")


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with two GPUs that only `nvidia-smi` has ever seen."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    lines = "".join(f"echo 'GPU {n}: Pretended (UUID: {card})'\n" for n, card in enumerate(CARDS))
    program.write_text(f"#!/bin/sh\n{lines}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield
    for card in CARDS:
        Path(f"/tmp/fedbench-{os.getuid()}/{card}.lock").unlink(missing_ok=True)


def train_again(project: Project, *arguments: str) -> list[int]:
    """Train both cells of the table once more; return how many jobs each wave of training had."""
    shutil.rmtree(project.root / "results")
    said = project.snakemake("tables/table1.tex", "--cores", "2", "--config", "device=auto", *arguments)
    waves = re.findall(r"^Execute (\d+) jobs\.\.\.\n((?:(?!Execute).*\n)*)", said, flags=re.MULTILINE)
    return [int(jobs) for jobs, what in waves if re.search(r"^localrule train:", what, flags=re.MULTILINE)]


def cards_seen(project: Project) -> list[str]:
    """The card of each training job, as its log tells."""
    logs = [path.read_text() for path in (project.root / "logs/train").rglob("*.log")]
    return [match for log in logs for match in re.findall(r"CUDA_VISIBLE_DEVICES=(\S+)", log)]


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(("given", "waves", "seen"), [((), [1, 1], 1), (("--resources", "gpu=2"), [2], 2)])
def test_a_job_has_a_card_and_as_many_train_at_a_time_as_are_given(
    built: Project, given: tuple[str, ...], waves: list[int], seen: int
) -> None:
    """One with the default profile, the first of both."""
    assert train_again(built, "seeds=0", *given) == waves
    assert {*cards_seen(built)} == {*CARDS[:seen]} and len(cards_seen(built)) == 2


def test_without_cards_there_are_as_many_jobs_as_cores_and_the_same_bytes_as_with_one(
    built: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    alone = [built.curves(), *((built.root / name).read_bytes() for name in OWN)]
    assert train_again(built) == [2]
    assert [built.curves(), *((built.root / name).read_bytes() for name in OWN)] == alone
    assert len(alone[0]) == 4
