"""The documentation: no dead link, in the site or in the README, and a front page of a size that is read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from projects import BIN, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_and_pictures_of_the_readme_are_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert len(targets) > 8
    assert [target for target in targets if not (ROOT / target.partition("#")[0]).exists()] == []


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 1500


def test_the_site_builds_without_a_dead_link(tmp_path: Path) -> None:
    pytest.importorskip("material")
    made = subprocess.run(
        [BIN / "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "site/results/index.html").is_file()
