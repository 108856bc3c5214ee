"""The files of ``config/tuned``: what trials scored and what was chosen, under a checksum."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fedbench import files, seal
from fedbench.errors import UserError
from fedbench.plan import configuration
from fedbench.reading import parse_yaml
from fedbench.store.runs import Store

PARTS = ("commits", "chosen", "scores")
"""What a file says of each method."""
Rows = Sequence[Mapping[str, Any]]
"""A method's trials: values, the score, and the score of each of its ``runs``."""


class Choices:
    """What was chosen on a dataset, and per method what a tuning that goes on has found so far.

    The cells read ``path``. A method's scores gather in a file of its own under ``unfinished``, so that a tuning goes
    on from them wherever the store is. Its choice moves to ``path`` at once, unless others there were made by another
    protocol: then all stay as they are until the last of those methods has been tuned the new way.

    Args:
        path: the file that the cells read.
        header: its first line.
        protocol: how the trials are made.
        methods: the order in which the file has them, whichever ended first.
    """

    def __init__(self, path: Path, header: str, protocol: Mapping[str, Any], methods: Iterable[str]) -> None:
        self.path, self._header, self._protocol = path, header, protocol
        self._methods = [*methods]

    def unfinished(self, method: str) -> Path:
        """Return the file in which the scores of a method gather."""
        return self.path.parent / "unfinished" / self.path.stem / f"{method}.yaml"

    def known(self, method: str) -> list[tuple[Rows, str]]:
        """Return the trials of a method that each of the files has, and the commits they were made at."""
        found = [read(self.path), read(self.unfinished(method))]
        return [
            (content.get("scores", {}).get(method, []), content.get("commits", {}).get(method, ""))
            for content in found
        ]

    def waiting(self, methods: Iterable[str]) -> list[str]:
        """List the other methods whose choices were made by another protocol and have not been made by this one."""
        known = read(self.path)
        if known.get("protocol") == self._protocol:
            return []
        return [name for name in known.get("chosen", {}) if name not in {*methods} and not self._made(name)]

    def note(self, method: str, rows: Rows, commits: str) -> None:
        """Keep the scores that a method has so far."""
        self._write(self.unfinished(method), {"commits": {method: commits}, "scores": {method: rows}})

    def choose(self, method: str, values: Mapping[str, Any], rows: Rows, commits: str) -> None:
        """Keep a method's choice, in ``path`` as soon as all that stands there is made by one protocol."""
        found = {"commits": {method: commits}, "chosen": {method: values}, "scores": {method: rows}}
        self._write(self.unfinished(method), found)
        with files.locked(Store().root / "tune.lock"):  # another call may end at the same moment
            if not self.waiting([method]):
                self._move(self.unfinished(method).parent)

    def _move(self, folder: Path) -> None:
        """Move the choices that are made by this protocol from their own files to ``path``."""
        ready = [name for name in sorted(path.stem for path in folder.glob("*.yaml")) if self._made(name)]
        known = read(self.path)
        if known.get("protocol") != self._protocol:
            known = {}
        contents = [known, *(read(self.unfinished(name)) for name in ready)]
        names = dict.fromkeys([*self._methods, *known.get("chosen", {}), *ready])
        found = {
            part: {
                name: content[part][name]
                for name in names
                for content in contents
                if name in content.get(part, {})
            }
            for part in PARTS
        }
        self._write(self.path, found)
        for name in ready:
            self.unfinished(name).unlink(missing_ok=True)
        for empty in (folder, folder.parent):
            with contextlib.suppress(OSError):  # another method's scores are in there
                empty.rmdir()

    def _made(self, method: str) -> bool:
        content = read(self.unfinished(method))
        return content.get("protocol") == self._protocol and method in content.get("chosen", {})

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        scores = {name: [_Line(row) for row in rows] for name, rows in content["scores"].items()}
        body = _as_yaml({"protocol": self._protocol, **content, "scores": scores})
        files.write(path, self._header + sealed(body))


def read(path: Path) -> dict[str, Any]:
    """Read a file of choices, empty where there is none yet."""
    known = configuration.read_tuned(path) if path.exists() else {}
    for name, rows in known.get("scores", {}).items():
        for row in rows:
            if not isinstance(row.get("runs"), dict) or not isinstance(row.get("short", {}), dict):
                raise UserError(
                    f"{path}: a trial of {name} does not give the score of each of its `runs`; remove the file to tune"
                    " again"
                )
    return known


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
