"""Two ways to lay dictionaries over each other: what ``null`` means is the difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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


def overlaid(base: Any, own: Any) -> Any:
    """Lay one piece of YAML over another key by key: a ``null`` is kept, to remove a key when layers are merged."""
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    return {**base, **{key: overlaid(base.get(key), value) for key, value in own.items()}}
