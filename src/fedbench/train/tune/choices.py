"""The files of ``config/tuned``: what trials scored and what was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fedbench import files
from fedbench.store.runs import Store
from fedbench.study.tuned import read_tuned_file


class Choice(NamedTuple):
    """What the file says of a method.

    Attributes:
        commits: those that its trials were made at.
        code: digests of the code that made them, as far as they record it.
        chosen: the values of the best trial.
        scores: its trials: values, the score, and the score of each of its ``runs``.
    """

    commits: str
    code: str
    chosen: Mapping[str, Any]
    scores: Sequence[Mapping[str, Any]]


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

    def scores(self) -> dict[str, tuple[float | None, str, str]]:
        """Return what the file knows of runs by their keys: the score, and commits and code of the method's trials.

        Scores of another metric are left out.
        """
        content = read_tuned_file(self.path)
        judged, asked = _metrics(content.get("protocol", {})), _metrics(self._protocol)
        return {
            key: (score, *(content.get(made, {}).get(method, "") for made in ("commits", "code")))
            for method, rows in content.get("scores", {}).items()
            for row in rows
            for part in asked
            if judged[part] == asked[part]
            for key, score in row.get(part, {}).items()
        }

    def waiting(self, methods: Iterable[str]) -> list[str]:
        """List the other methods of the file where it was made by another protocol."""
        known = read_tuned_file(self.path)
        if known.get("protocol") == self._protocol:
            return []
        return [name for name in known.get("chosen", {}) if name not in {*methods}]

    def write(self, choices: Mapping[str, Choice]) -> None:
        """Put choices into the file, unless it has methods of another protocol that are not among them."""
        with files.locked(Store().root / "tune.lock"):  # another call may end at the same moment
            if self.waiting(choices):
                return
            known = read_tuned_file(self.path)  # of another protocol: all of its methods are replaced
            order = [*dict.fromkeys([*self._methods, *known.get("chosen", {})])]
            content: dict[str, Any] = {"protocol": self._protocol}
            for part in Choice._fields:
                of_methods = known.get(part, {}) | {name: getattr(choices[name], part) for name in choices}
                content[part] = {name: of_methods[name] for name in order if name in of_methods}
            content["code"] = {name: code for name, code in content["code"].items() if code}
            content["scores"] = {name: [*map(_Line, rows)] for name, rows in content["scores"].items()}
            text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=160)
            files.write(self.path, self._header + text)


def _metrics(protocol: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the metric that judges the runs of a trial, and that of its short ones."""
    metric = protocol.get("metric")
    return {"runs": metric, "short": (protocol.get("stable") or {}).get("metric") or metric}


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
