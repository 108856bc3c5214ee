"""What was tuned for a method at a setting, which published constants stand instead, and how long its trials were."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedbench import files
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study.configuration import CONFIG_DIR, read_yaml
from fedbench.study.layers import LENGTHS
from fedbench.study.schema import Paper, Scale, Value
from fedbench.study.tuning import Trials

FAR = 4
"""A run this many times as long as the trials is beyond what they can say."""
SHARES = ("beta", "beta_in", "beta_x", "beta_y", "alpha_h", "dominance")
"""Hyper-parameters that end at 1. Planning imports no method, and so cannot read it off their fields."""
POSITIVES = "train.positives"
"""Nothing for it is batches as they fall: as rare positives are, fewer than any number."""


@dataclass(frozen=True)
class Tuned:
    """The values of one method at one setting.

    Attributes:
        path: the file of trials, whether it exists or not.
        values: tuned hyper-parameters, and places of a run with dots; empty where nothing was tuned.
        published: hyper-parameters that keep their published value, with what the trials chose instead.
        tried: the values of each trial.
        protocol: how the trials were made (:class:`~fedbench.study.schema.TuneSpec`); empty in a file written by hand.
    """

    path: Path
    values: dict[str, Any]
    published: dict[str, Any] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)
    protocol: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def edges(self) -> list[str]:
        """Which of the values are the smallest or the largest that was tried (:func:`edges`)."""
        return [name for name in edges(self.values | self.published, self.tried) if name in self.values]

    def trials(self, run: RunSpec) -> str:
        """Say how long the trials were, and that it is too short for ``run`` if it is; empty if it is not known."""
        given = self.protocol.get("set") or {}  # a length that the call of `fedbench tune` set comes first
        called = {name: given[f"train.{name}"] for name in LENGTHS if f"train.{name}" in given}
        train = called or self.protocol.get("train") or {}
        unit = next((name for name in LENGTHS if train.get(name) is not None), None)
        if unit is None or not self.values:
            return ""
        length = getattr(run.train, unit)
        far = length is not None and length >= FAR * train[unit]
        return f"trials of {train[unit]} {unit}" + (
            f", {length / train[unit]:.3g} times shorter" if far else ""
        )


def edges(values: Mapping[str, Any], tried: Iterable[Mapping[str, Any]]) -> list[str]:
    """Name the chosen numbers beyond which nothing was tried although there is something beyond.

    What was tried with another word counts for nothing: how large a step may be for sigmoids says little of logits.
    """
    on_edge, rows = [], list(tried)
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    alike = [row for row in rows if all(row.get(name, word) == word for name, word in words.items())]
    for name, value in values.items():
        numbers, varied = _numbers(alike, name), len(_numbers(rows, name)) > 1
        if varied and value in (min(numbers), max(numbers)) and not _at_bound(name, value):
            on_edge.append(name)
    return on_edge


def _at_bound(name: str, value: float) -> bool:
    """Say whether nothing lies beyond a value: 0 for most hyper-parameters, 1 for a share, -1 for a first alpha."""
    return value == 0 or (name in SHARES and value == 1) or (name == "alpha_start" and value == -1)


def _numbers(rows: Iterable[Mapping[str, Any]], name: str) -> set[float]:
    values = {row[name] for row in rows if type(row.get(name)) in (int, float)}
    return values | {0 for row in rows if name == POSITIVES and row.get(name, 0) is None}


def tuned_path(paper: Paper, dataset: str, setting: Mapping[str, Value]) -> Path:
    """Return the file of what was tuned for a setting: one a dataset, or one for each value of ``tune.each``.

    :func:`tuned_for` says where the choices that a scale has for itself are.
    """
    apart = paper.tune.each if paper.tune is not None else {}
    at = "".join(f"_{name}{setting[name]}" for name in apart)
    return Path(f"{CONFIG_DIR}/tuned/{paper.key}/{dataset}{at}.yaml")


def read_tuned_file(path: Path) -> dict[str, Any]:
    """Read a file of trials, what was ``chosen`` and by which ``protocol``; empty where there is none."""
    marked = files.mark(path)
    return _trials(path, marked) if marked else {}


@functools.lru_cache(maxsize=64)
def _trials(path: Path, _mark: files.Mark) -> dict[str, Any]:
    """Parse a file of tuned values once."""
    content: dict[str, Any] = read_yaml(path)
    try:
        Trials.model_validate(content)
    except ValidationError as error:
        section = str((*error.errors()[0]["loc"], "chosen")[0])
        raise UserError(
            f"{path}: `{section}` is missing or not as `fedbench tune` writes it; remove "
            + ("the file" if section == "chosen" else "it")
        ) from None
    return content


def tuned_for(paper: Paper, dataset: str, setting: Mapping[str, Value], method: str, scale: Scale) -> Tuned:
    """Look up what was tuned for a method.

    A file in a folder with the scale's name (``config/tuned/<paper>/<scale>/<dataset>.yaml``) comes before the one of
    all scales. Where the scale has ``constants: paper``, published hyper-parameters are left alone.
    """
    usual = tuned_path(paper, dataset, setting)
    lent = None if paper.defines(dataset, method) else paper.extends
    folders = [usual.parent, *([usual.parent.parent / lent] if lent else [])]
    places = [place / usual.name for folder in folders for place in (folder / scale.name, folder)]
    known = ((path, read_tuned_file(path)) for path in places)
    has = ((path, content) for path, content in known if method in content.get("chosen", {}))
    path, content_ = next(has, (usual, {}))
    values: dict[str, Any] = content_.get("chosen", {}).get(method, {})
    keep = {*paper.methods[method].published} if scale.constants == "paper" else set()
    return Tuned(
        path,
        {name: value for name, value in values.items() if name not in keep},
        {name: value for name, value in values.items() if name in keep},
        content_.get("scores", {}).get(method, []),
        content_.get("protocol", {}),
    )
