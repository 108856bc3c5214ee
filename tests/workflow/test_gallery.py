"""The built examples in git are what ``make gallery`` makes of today's reference results, code and configuration."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from projects import ROOT

PLACES = ("tables/gallery", "figures/gallery", "docs/reference/gallery.md")
MOST = 1_500_000
"""Bytes of all examples."""


def contents(root: Path) -> dict[str, bytes]:
    """The examples and their page by name."""
    files = [
        path for place in PLACES for path in ([root / place] if "." in place else (root / place).rglob("*.*"))
    ]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = tmp_path_factory.mktemp("gallery")
    program = f"import gallery, pathlib; gallery.write(pathlib.Path({str(root)!r}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "benchmarks", check=True)
    return contents(root)


def test_the_examples_are_what_is_built_today(made: dict[str, bytes]) -> None:
    kept = contents(ROOT)
    assert [*kept] == [*made], "run `make gallery`"
    assert [name for name in made if kept[name] != made[name]] == [], "run `make gallery`"


def test_each_study_with_results_has_examples_that_can_be_looked_at(made: dict[str, bytes]) -> None:
    studies = {path.stem for path in ROOT.glob("reproduced/*/*.csv")}
    assert {name.split("/")[2] for name in made if name.startswith("tables/")} == studies
    assert {"tables/gallery/climb/table1.md", "tables/gallery/climb/table1.tex"} <= {*made}
    assert "figures/gallery/localscgdam/figure1.svg" in made
    page = made["docs/reference/gallery.md"].decode()
    assert all(f"../../{name})" in page for name in made if "gallery/" in name)
    table = made["tables/gallery/localscgdam/table1.md"].decode()
    assert re.search(r"^\| CoDA +\| 0\.984‡±0\.001 +\| 0\.976 ", table, flags=re.M)
    assert not any(str(ROOT).encode() in content for content in made.values())
    assert sum(map(len, made.values())) <= MOST
