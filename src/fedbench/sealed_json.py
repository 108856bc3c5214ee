"""Files of facts that carry their own checksum: a byte that changes is noticed before it changes a number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedbench import files

LARGEST = 1 << 26
"""Bytes such a file may have; those of a run that is evaluated a million times have fewer."""


def checksum(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of facts as JSON."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write(path: Path, fields: Mapping[str, Any]) -> None:
    """Write facts and their checksum as a JSON file, atomically."""
    files.write(path, sealed(fields))


def sealed(fields: Mapping[str, Any]) -> str:
    """Return facts and their checksum as the text of a JSON file."""
    facts = json.loads(json.dumps(fields))
    return json.dumps(facts | {"checksum": checksum(facts)}, indent=1, sort_keys=True) + "\n"


def read(path: Path) -> dict[str, Any]:
    """Read facts and hold them against their checksum.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is not what was written, or has no checksum.
        ReadError: it cannot be read now.
    """
    try:
        facts = json.loads(files.read(path, LARGEST))
    except RecursionError:
        raise ValueError("its content is nested too deeply") from None
    if not isinstance(facts, dict):
        raise ValueError("it holds no JSON object")
    given = facts.pop("checksum", "")
    if not given:
        raise ValueError(f"{path.name} has no checksum")
    if given != checksum(facts):
        raise ValueError(f"{path.name} is not what was written")
    return facts
