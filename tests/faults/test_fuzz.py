"""Odd configurations, drawn from seeds: cells or one line, never a traceback, and nothing runs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.study.plan import Plan

CASES = 40
ROOT = Path(__file__).parents[2]
WORDS = [
    "", "~", "-1", "0", "1e400", ".nan", ".inf", "9" * 400, "2023-99-99", "[]", "{}", "[[[[]]]]", "true", "../../x",
    "$(touch harm)", "{x}", "é", "'\\0'", "*a", "&a [*a]", "!!python/object/apply:os.system [touch harm]", "²",
    "- ", "a: b",
]  # fmt: skip


def odd(content: bytes, draw: random.Random) -> bytes:
    """Change one byte anywhere, or the value of a key."""
    if draw.random() < 0.3:
        changed = bytearray(content)
        changed[draw.randrange(len(changed))] ^= draw.randrange(1, 256)
        return bytes(changed)
    lines = content.decode().splitlines()
    place = draw.randrange(len(lines))
    lines[place] = f"{lines[place].partition(':')[0]}: {draw.choice(WORDS)}"
    return "\n".join(lines).encode()


def test_odd_configurations_are_cells_or_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "config", "config")
    files = {path: path.read_bytes() for path in sorted(Path("config").rglob("*.yaml"))}
    for number in range(CASES):
        draw = random.Random(f"configurations {number}")
        path = draw.choice([*files])
        path.write_bytes(odd(files[path], draw))
        for paper in ("localscgdam", "climb"):
            try:
                Plan(configuration.load_config(), paper).cells()
            except UserError as error:
                assert len(str(error)) < 2000
        path.write_bytes(files[path])
    assert not Path("harm").exists()
