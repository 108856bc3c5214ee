"""The built examples in git are what ``make gallery`` makes of today's reference results, code and configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from projects import ROOT

PLACES = ("tables/gallery", "figures/gallery", "docs/reference/gallery.md")
MOST = 1_500_000
"""Bytes of all examples."""


def contents(root: Path) -> dict[str, bytes]:
    """The examples and their page by name."""
    places = [root / place for place in PLACES]
    files = [path for place in places for path in ([place] if place.suffix else place.rglob("*.*"))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_examples_are_what_is_built_today(tmp_path: Path) -> None:
    program = f"import gallery, pathlib; gallery.write(pathlib.Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "benchmarks", check=True)
    kept, made = contents(ROOT), contents(tmp_path)
    assert {*kept} == {*made}, "run `make gallery`"
    assert [name for name in made if kept[name] != made[name]] == [], "run `make gallery`"
    studies = {path.stem for path in ROOT.glob("reproduced/*/*.csv")}
    assert {name.split("/")[2] for name in made if name.startswith("tables/")} == studies
    page = made["docs/reference/gallery.md"].decode()
    assert all(f"../../{name})" in page for name in made if "gallery/" in name)
    assert not any(str(ROOT).encode() in content for content in made.values())
    assert sum(map(len, made.values())) <= MOST
