"""Raw files as their sources have them, made small."""

from __future__ import annotations

from pathlib import Path


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
