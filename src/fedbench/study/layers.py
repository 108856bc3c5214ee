"""Where each value of a run comes from: the layers of the configuration, and what a call lays over them."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from fedbench.errors import UserError, shortened, unknown
from fedbench.safe_yaml import parse_yaml
from fedbench.study.entries import PIECES

LENGTHS = ("iterations", "epochs", "rounds", "cycles")
"""Keys of ``train`` that say how long a run is."""
ALTERNATIVES = (LENGTHS, ("period", "local_epochs"), ("batch_size", "batches_per_epoch"))
"""Keys of ``train`` that exclude each other: saying one takes the others away."""
OF_CLASSES = ("labels", "imbalance", "sources", "tests")
"""Keys of ``data`` that are about one dataset: rules for its classes, and what is joined to it."""
ROOTS = ("params", *PIECES)


@dataclass(frozen=True)
class Layer:
    """A piece of a run specification, and what it is called."""

    name: str
    piece: Mapping[str, Any]


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the layers of a run key by key, later ones winning: nested dictionaries merge, ``null`` removes a key."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, dict):
                old = result.get(key)
                result[key] = merged(old if isinstance(old, dict) else {}, value)
            elif value is None:
                result.pop(key, None)
            else:
                result[key] = value
    return result


def overlaid(base: Any, over: Any) -> Any:
    """Lay one piece of YAML over another key by key: a ``null`` is kept, to remove a key when layers are merged."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: overlaid(base.get(key), value) for key, value in over.items()}}


def part_of(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a file or a run by its keys; one that has none is named when the whole is validated."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def datasets_of(data: Mapping[str, Any]) -> list[str]:
    """Return the dataset of a piece ``data`` of a run, and the further ones that are joined to it."""
    sources = data.get("sources")
    return [str(name) for name in (data.get("dataset"), *(sources if isinstance(sources, list) else ()))]


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """Return ``{"a": {"b": value}}`` for the place ``a.b``."""
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def places(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by their places; an empty mapping is a value."""
    if not isinstance(value, Mapping) or not value:
        return {prefix: value}
    by_place: dict[str, Any] = {}
    for key, inner in value.items():
        by_place |= places(inner, f"{prefix}.{key}" if prefix else str(key))
    return by_place


def origins(layers: Sequence[Layer]) -> dict[str, str]:
    """Return which layer has the last word on each place that the layers give a value."""
    layer_of: dict[str, str] = {}
    for layer in layers:
        layer_of |= dict.fromkeys(places(layer.piece) if layer.piece else (), layer.name)
    kept = places(merged(*(layer.piece for layer in layers)))
    return {place: name for place, name in layer_of.items() if place in kept}


def given(text: str | Mapping[str, Any]) -> dict[str, Any]:
    """Read places and values as ``--config set=train.iterations=200,params.lr=0.1`` gives them.

    Raises:
        UserError: it is nothing of the kind, or a place that no run has.
    """
    if isinstance(text, Mapping):
        by_place = {str(place): value for place, value in text.items()}
    elif isinstance(text, str):
        by_place = dict(map(assigned, re.split(r"[,\s]+(?=[a-z_]+\.[a-z_.]+=)", text.strip())))
    else:
        raise UserError(f"set takes PLACE=VALUE such as train.iterations=200, not {shortened(text)}")
    for place in by_place:
        root, dot, _ = place.partition(".")
        if not dot or root not in ROOTS:
            raise unknown("place of a run", place, [f"{name}.…" for name in ROOTS])
    return by_place


def assigned(item: str) -> tuple[str, Any]:
    """Read ``KEY=VALUE``, whose value is YAML; UserError where it is nothing of the kind."""
    key, equals, value = item.partition("=")
    if not equals:
        raise UserError(f"set takes KEY=VALUE such as train.iterations=200, not {shortened(item)!r}")
    try:
        read = parse_yaml(value)
    except ValueError:
        raise UserError(f"set {shortened(key)}: {shortened(value)!r} is not valid YAML") from None
    # the workflow hands on JSON: 1e-05 is a number there, in YAML a text
    with contextlib.suppress(ValueError):
        return key, from_json(value, allow_inf_nan=False)
    return key, read


def as_options(given: Mapping[str, Any]) -> str:
    """Write keys of the configuration and places of a run as options of `fedbench`: ``--set train.iterations=200``."""
    return " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in given.items())


def overrides(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call sets as the last piece of a run; ``train.iterations`` takes ``train.epochs`` away.

    Another ``data.dataset`` takes away what was said of the classes of the one before.
    """
    pieces = [nested(f"data.{name}", None) for name in OF_CLASSES if "data.dataset" in chosen]
    for place, value in chosen.items():
        root, _, key = place.partition(".")
        others = next((names for names in ALTERNATIVES if root == "train" and key in names), ())
        pieces += [nested(f"train.{name}", None) for name in others if name != key]
        pieces.append(nested(place, value))
    return functools.reduce(overlaid, pieces, {})
