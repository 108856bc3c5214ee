"""Where tables and figures are written, and how: under a temporary name first, never half a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedbench import files

TABLES = Path("tables")
FIGURES = Path("figures")
REPRODUCED = Path("reproduced")
REPORTS = Path("reports")


def write(path: Path, content: str | bytes) -> Path:
    """Write ``content`` (text as UTF-8 with plain line ends) and return the path.

    Raises:
        WriteError: the disk takes no files.
    """
    files.write(path, content)
    return path


def write_forms(stem: Path, forms: Mapping[str, str | bytes]) -> list[Path]:
    """Write the forms of one table or figure, ``{suffix: content}``, beside each other and return the paths."""
    return [write(stem.with_name(f"{stem.name}.{suffix}"), content) for suffix, content in forms.items()]
