"""The files of ``config/tuned``: what trials scored and what was chosen, under a checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedbench import files, seal
from fedbench.errors import UserError
from fedbench.plan import configuration
from fedbench.reading import parse_yaml


def read(path: Path) -> dict[str, Any]:
    """Read a file of choices, empty where there is none yet."""
    known = configuration.read_tuned(path) if path.exists() else {}
    for name, rows in known.get("scores", {}).items():
        for row in rows:
            if not isinstance(row.get("runs"), dict):
                raise UserError(
                    f"{path}: a trial of {name} does not give the score of each of its `runs`; remove the file to tune"
                    " again"
                )
    return known


def add(path: Path, header: str, protocol: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was found for some methods, ``found[part][method]``; what the file says of others stays."""
    known = read(path)  # now: another call may have ended meanwhile
    content: dict[str, Any] = {part: {**known.get(part, {}), **found[part]} for part in found}
    content["scores"] = {name: [_Line(row) for row in rows] for name, rows in content["scores"].items()}
    files.write(path, header + sealed(_as_yaml({"protocol": protocol, **content})))


def sealed(body: str) -> str:
    """Put the checksum of what a YAML text holds in its first line."""
    return f"checksum: {seal.checksum(parse_yaml(body))}\n{body}"


def _as_yaml(content: Mapping[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=160)


class _Line(dict[str, Any]):
    """A trial in the file: one line, whatever it holds."""


class _Dumper(yaml.SafeDumper):
    """Knows such lines, and writes a list that several trials share out each time."""

    def ignore_aliases(self, data: Any) -> bool:
        """Say that nothing is written as a reference to something above."""
        return True


_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True)
)
