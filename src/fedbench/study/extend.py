"""A paper that builds on another: ``extends: <key>`` in its YAML, and only what is different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedbench.project import Folder
from fedbench.study.layers import overlaid, part_of

ENTRIES = ("datasets", "methods", "settings")
OVERLAID = ("defaults", *ENTRIES)
PUBLISHED = Folder("published")


def extended(base_key: str, base: Mapping[str, Any], paper: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a paper's YAML over the one it extends.

    Whatever defines experiments (defaults, datasets, methods, settings, tuning) is taken over, changed where ``paper``
    repeats it. A table or figure is there only if ``paper`` names it; one that the base has too keeps what ``paper``
    leaves out, its published numbers included, but the base's words: its title is the paper's by default. Claims are
    about the base's own tables and are left behind.

    A dataset that is added keeps its labels and all of its samples unless its entry, or the defaults of ``paper``, say
    otherwise: what the base does to labels is about the base's data. A table that names it holds what it names.

    Returns:
        The keys of :class:`fedbench.study.schema.Paper`; ``defined`` lists what ``paper`` adds or changes.
    """
    result = {key: value for key, value in base.items() if key not in ("tables", "figures", "claims")}
    result |= {key: value for key, value in paper.items() if key not in OVERLAID}
    for key in OVERLAID:
        if key in base or key in paper:
            result[key] = overlaid(base.get(key, {}), paper.get(key, {}))
    for kind in ("tables", "figures"):
        for name, entry in part_of(paper, kind).items():
            taken = _taken_over(part_of(part_of(base, kind), name), base_key, result["title"])
            result[kind] = {**result[kind], name: overlaid(taken, entry)}
    listed = [*part_of(paper, "datasets")]
    added = [name for name in listed if name not in part_of(base, "datasets")]
    for name in added:
        result["datasets"][name] = _as_it_is(result["datasets"][name], part_of(paper, "defaults"))
    for entry in part_of(result, "tables").values():
        named = entry.get("datasets") if isinstance(entry, dict) else None
        if isinstance(named, list) and any(name in added for name in named):
            entry.setdefault("additions", [])  # a table of one's own data holds what it names
    inherited = {name: _with_datasets(scale, listed) for name, scale in base.get("scales", {}).items()}
    result["scales"] = overlaid(inherited, paper.get("scales", {}))
    return result | {"defined": {key: [*part_of(paper, key)] for key in ENTRIES}}


def _as_it_is(entry: Any, defaults: Mapping[str, Any]) -> Any:
    """Give the entry of an added dataset plain rules for what neither it nor the new paper's defaults speak of."""
    if not isinstance(entry, dict) or not isinstance(entry.get("data"), dict):
        return entry  # a mistake, named when the paper is validated
    said = {**part_of(defaults, "data"), **entry["data"]}
    plain = {
        "labels": {"rule": "original", "positive": None, "flip": None},
        "imbalance": {"rule": "none", "share": None},
    }
    return {
        **entry,
        "data": {**{key: rule for key, rule in plain.items() if key not in said}, **entry["data"]},
    }


def _with_datasets(scale: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Add datasets to those of a scale, unless it has all."""
    listed = scale.get("datasets")
    return {**scale, "datasets": [*dict.fromkeys([*listed, *names])]} if listed else scale


def _taken_over(target: Mapping[str, Any], base_key: str, title: str) -> dict[str, Any]:
    """Return a base's table or figure under the new paper's title, without the base's words about it.

    The base's file of published numbers is named by its path: the new paper has a folder of its own.
    """
    if not target:
        return {}
    taken = {**{key: value for key, value in target.items() if key != "caption"}, "title": title}
    name = target.get("published")
    return taken | {"published": f"{PUBLISHED}/{base_key}/{name}"} if name and "/" not in name else taken
