"""What `make` would do, and what `make clean` leaves. Nothing is installed or trained."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from projects import ROOT


def make(folder: Path, *arguments: str) -> str:
    """Call make in a folder that has the Makefile; return what it printed."""
    shutil.copy(ROOT / "Makefile", folder)
    environment = {name: value for name, value in os.environ.items() if name not in ("SCALE", "MAKEFLAGS")}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(("target", "scale"), [("tables", None), ("report", None), ("table1", "demo")])
def test_the_scale_is_the_configurations_unless_one_is_given(
    tmp_path: Path, target: str, scale: str | None
) -> None:
    for given, used in (("", scale), ("SCALE=reduced", "reduced")):
        lines = make(tmp_path, "-n", "-o", ".venv/.installed", target, *given.split()).splitlines()
        (called,) = (line.split() for line in lines if "/snakemake " in line)
        assert [word for word in called if word.startswith("scale=")] == [f"scale={used}"] * bool(used)
        assert ("--config" in called) == bool(used)


KEPT = """published/climb/a.csv tables/gallery/climb/table1.md figures/gallery/climb/figure1.svg data/raw/a
results/runs/a/run.json config/config.yaml"""
BUILT = """tables/table1.tex tables/table1.json tables/climb/table2.pdf figures/climb/figure1.svg report.html
logs/a.log"""


def test_clean_removes_what_was_built_here_and_keeps_the_examples(tmp_path: Path) -> None:
    for path in (tmp_path / name for name in (*KEPT.split(), *BUILT.split())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    make(tmp_path, "clean")
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*KEPT.split(), "Makefile"} and not (tmp_path / "tables/climb").exists()
