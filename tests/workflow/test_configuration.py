"""The configuration and the machine as Snakemake sees them: mistakes, cores, pretended cards, no fedbench."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.study.schema import Config
from projects import BIN, OWN, ROOT, Project

TABLE = ("tables/table1.tex", "-n")


def answered(project: Project, *arguments: str) -> str:
    """Return what a call with a mistake is answered with, before any work."""
    said = project.snakemake(*arguments, fails=True)
    assert "Traceback" not in said
    assert not any((project.root / part).exists() for part in ("data/prepared", "results/runs"))
    return said


def test_a_mistake_is_answered_before_any_work(project: Project) -> None:
    for given, says in (
        ("scale=reducd", "unknown scale 'reducd'. Did you mean 'reduced'?"),
        ("mirror=/no/such folder", "/no/such folder"),
    ):
        assert says in answered(project, "--config", given)
    with project.edit("config/papers/localscgdam.yaml") as paper:
        del paper["methods"]["LocalSGDM"]["params"]["momentum"]
    for call in (["-n"], []):
        said = answered(project, "tables/table1.tex", *call)
        assert "localscgdam.yaml: methods.LocalSGDM: method 'local_sgdm' needs momentum" in said


def without_torch(project: Project) -> None:
    """Let Snakemake fail in this project as soon as something imports PyTorch."""
    (project.root / "torch.py").write_text("raise RuntimeError('the workflow imported torch')\n")
    environment = project.environment()
    first = os.pathsep.join(filter(None, [str(project.root), environment.get("PYTHONPATH", "")]))
    project.programs = BIN
    project.environment = lambda: {**environment, "PYTHONPATH": first}  # type: ignore[method-assign]


def test_a_wrong_target_is_answered_with_the_known_ones_without_torch(project: Project) -> None:
    """Torch takes seconds to import: only cells that are to be trained are worth them."""
    without_torch(project)
    cell = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM"
    for slip, answer in (
        ("tables/tabel1.tex", "unknown table of localscgdam 'tabel1'. Did you mean 'table1'?"),
        ("figures/localscgdam/figur1.pdf", "'figur1'. Did you mean 'figure1'?"),
        (f"{cell}s.json", f"nearest: {cell}.json"),
    ):
        assert answer in answered(project, slip, "-n")


def test_cells_share_the_cores_for_their_seeds_and_jobs_on_a_card_claim_one(project: Project) -> None:
    """Two cells of two seeds each; a seed takes a core, and a job on a card takes no more than one."""
    shown = project.snakemake(*TABLE, "--cores", "9")
    assert shown.count("threads: 2") == 2 and "gpu=0" in shown and "gpu=1" not in shown
    assert "threads:" not in project.snakemake(*TABLE, "--cores", "3")
    on_card = project.snakemake(*TABLE, "--cores", "9", "--config", "device=cuda")
    assert "threads:" not in on_card and on_card.count("gpu=1") == 2 and "gpu=0" not in on_card
    counted = project.snakemake(*TABLE, "--cores", "9", "-q", "rules")
    assert "rule train:" in shown and "rule train:" not in counted, "a call that shows no jobs counts them"
    summary = counted.rpartition("Job stats:")[2]
    assert summary == shown.rpartition("Job stats:")[2] and "train" in summary and "Reasons:" in summary


# runs `snakemake` as in an environment of Snakemake alone: fedbench and what it alone needs cannot be imported
BARE = """
import sys
sys.modules |= dict.fromkeys(("fedbench", "scipy", "sklearn", "torch", "typer"))
from snakemake.cli import main
sys.argv[0] = "snakemake"
main(sys.argv[1:])
"""


def call(*command: str | Path, folder: Path = ROOT) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_readme_of_the_configuration_has_each_key() -> None:
    text = (ROOT / "config/README.md").read_text()
    assert [name for name in Config.model_fields if f"| `{name}` |" not in text] == []


def test_where_fedbench_is_not_installed_the_rules_can_be_linted_and_nothing_runs() -> None:
    status, said = call(sys.executable, "-c", BARE, "--lint")
    assert status == 0 and "your workflow is in a good condition" in said, said
    status, said = call(sys.executable, "-c", BARE, "--dry-run", "tables/table1.md")
    assert status == 1 and "error: fedbench is not installed where Snakemake runs; run `make setup`" in said
    assert "Traceback" not in said


def test_another_workflow_that_takes_it_as_a_module_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        f'module fedbench:\n    snakefile: "{ROOT}/workflow/Snakefile"\n    config: config\n\n'
        "use rule * from fedbench as fedbench_*\n"
    )
    status, said = call(BIN / "snakemake", "--dry-run", folder=tmp_path)
    assert status == 1 and "run it in a clone of fedbench or in a folder made by `fedbench init`" in said


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
