"""Two ways to lay mappings over each other: what ``null`` means is the difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the layers of a run key by key, later ones winning: nested mappings merge, ``null`` removes a key."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping):
                old = result.get(key)
                result[key] = merged(old if isinstance(old, Mapping) else {}, value)
            elif value is None:
                result.pop(key, None)
            else:
                result[key] = value
    return result


def overlaid(base: Any, own: Any) -> Any:
    """Lay one piece of YAML over another key by key: a ``null`` is kept, to remove a key when layers are merged."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return own
    return {**base, **{key: overlaid(base.get(key), value) for key, value in own.items()}}
