"""What `make clean` leaves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from projects import ROOT

KEPT = """published/climb/a.csv tables/gallery/climb/table1.md figures/gallery/climb/figure1.svg data/raw/a
results/runs/a/run.json config/config.yaml"""
BUILT = """tables/table1.tex tables/table1.json tables/climb/table2.pdf figures/climb/figure1.svg report.html
logs/a.log"""


def test_clean_removes_what_was_built_here_and_keeps_the_examples(tmp_path: Path) -> None:
    for path in (tmp_path / name for name in (*KEPT.split(), *BUILT.split())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*KEPT.split(), "Makefile"} and not (tmp_path / "tables/climb").exists()
