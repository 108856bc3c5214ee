"""The files of ``config/tuned``: what trials scored and what was chosen, under a checksum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fedbench import files, seal
from fedbench.errors import UserError
from fedbench.plan import configuration
from fedbench.reading import parse_yaml
from fedbench.store.runs import Store

Rows = Sequence[Mapping[str, Any]]
"""A method's trials: values, the score, and the score of each of its ``runs``."""


class Choice(NamedTuple):
    """What the file says of a method: the commits of its trials, the values of the best one, and all trials."""

    commits: str
    chosen: Mapping[str, Any]
    scores: Rows


class Choices:
    """The file of what was chosen on a dataset, which the cells read. All that stands in it is made by one protocol.

    Args:
        path: the file.
        header: its first line.
        protocol: how the trials are made.
        methods: the order in which the file has them, whichever ended first.
    """

    def __init__(self, path: Path, header: str, protocol: Mapping[str, Any], methods: Iterable[str]) -> None:
        self.path, self._header, self._protocol = path, header, protocol
        self._methods = [*methods]

    def known(self, method: str) -> tuple[Rows, str]:
        """Return the trials of a method that the file has, and the commits they were made at."""
        content = read(self.path)
        return content.get("scores", {}).get(method, []), content.get("commits", {}).get(method, "")

    def waiting(self, methods: Iterable[str]) -> list[str]:
        """List the other methods of the file where it was made by another protocol."""
        known = read(self.path)
        if known.get("protocol") == self._protocol:
            return []
        return [name for name in known.get("chosen", {}) if name not in {*methods}]

    def write(self, choices: Mapping[str, Choice]) -> None:
        """Put choices into the file, unless it has methods of another protocol that are not among them."""
        with files.locked(Store().root / "tune.lock"):  # another call may end at the same moment
            if self.waiting(choices):
                return
            known = read(self.path)  # of another protocol: all of its methods are replaced
            content: dict[str, Any] = {"protocol": self._protocol}
            for part in Choice._fields:
                of_methods = known.get(part, {}) | {
                    name: getattr(choice, part) for name, choice in choices.items()
                }
                order = dict.fromkeys([*self._methods, *of_methods])
                content[part] = {name: of_methods[name] for name in order if name in of_methods}
            content["scores"] = {name: [*map(_Line, rows)] for name, rows in content["scores"].items()}
            files.write(self.path, self._header + sealed(_as_yaml(content)))


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
