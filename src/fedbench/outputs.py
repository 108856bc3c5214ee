"""Where tables and figures are written, and how: under a temporary name first, never half a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedbench import files
from fedbench.project import Folder

if TYPE_CHECKING:
    import pandas as pd

TABLES = Path("tables")
FIGURES = Path("figures")
REPRODUCED = Folder("reproduced")


def write_forms(stem: Path, forms: Mapping[str, str | bytes]) -> list[Path]:
    """Write the forms of one table or figure, ``{suffix: content}``, beside each other and return the paths."""
    return [
        files.write(stem.with_name(f"{stem.name}.{suffix}"), content) for suffix, content in forms.items()
    ]


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV with six significant digits."""
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def json_text(value: Any) -> str:
    """Return a value as JSON that people can read."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
