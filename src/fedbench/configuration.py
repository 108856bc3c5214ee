"""Reads the configuration: the user's own, the papers' experiments, the scales and what was tuned."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from fedbench.errors import UserError, unknown
from fedbench.extend import extended
from fedbench.schema import Config, FigureSpec, Paper, Scale, TableSpec
from fedbench.specs import validated

CONFIG_DIR = Path("config")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, where PyYAML has it: ten times faster


def read_yaml(path: Path) -> Any:
    """Read a YAML file; a missing or broken one is a :class:`UserError` naming it."""
    return copy.deepcopy(_content(path))


def _content(path: Path) -> dict[str, Any]:
    """Return what a YAML file holds, not to be changed; a file that has not changed is parsed once."""
    try:
        facts = path.stat()
        content = _parse(path.resolve(), facts.st_mtime_ns, facts.st_size)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run fedbench from the project's root") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no keys but {content!r}")
    return content


@functools.lru_cache(maxsize=256)
def _parse(path: Path, changed: int, size: int) -> Any:
    return yaml.load(path.read_text(), LOADER) or {}


def load_config(
    path: Path = CONFIG_DIR / "config.yaml", overrides: Mapping[str, Any] | None = None
) -> Config:
    """Read the user's configuration; ``overrides`` (``--config``) win, and ``null`` keeps the file's value."""
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    for key, kind in (("seeds", int), ("datasets", str)):
        if isinstance(given.get(key), str | int):
            parts = [part.strip() for part in str(given[key]).split(",")]
            if kind is int and not all(part.isdigit() for part in parts):
                raise UserError(f"seeds: {given[key]!r} is not a list of whole numbers such as 0,1,2")
            given[key] = [kind(part) for part in parts]
    return validated(Config, {**read_yaml(path), **given}, path)


def _load_named(kind: str, name: str, folder: Path) -> Any:
    known = {path.stem: path for path in folder.glob("*.yaml")}
    if name not in known:
        raise unknown(kind, name, known)
    return read_yaml(known[name])


def load_paper(key: str, config_dir: Path = CONFIG_DIR) -> Paper:
    """Read ``config/papers/<key>.yaml`` and check that all its parts name things it defines."""
    folder = config_dir / "papers"
    source, content = folder / f"{key}.yaml", _load_named("paper", key, folder)
    if (base := content.get("extends")) is not None:
        if base not in (known := [other for other in paper_keys(config_dir) if other != key]):
            raise UserError(f"{source}: {unknown('paper to extend', str(base), known)}")
        below = read_yaml(folder / f"{base}.yaml")
        if "extends" in below:
            raise UserError(f"{source} extends {base}, which extends another paper itself; extend that one")
        load_paper(base, config_dir)  # its mistakes are its own
        content = extended(base, below, content)
    paper = validated(Paper, {**content, "key": key}, source)
    for place, kind, used, defined in _names(paper):
        for item in used:
            if item not in defined:
                raise UserError(f"{source}: {place}: {unknown(kind, item, defined)}")
    return paper


def _names(paper: Paper) -> Iterator[tuple[str, str, Iterable[str], Iterable[str]]]:
    """List what the parts of a paper name: the part, the kind of thing, the names, and those there are."""
    specs: Mapping[str, TableSpec | FigureSpec] = {**paper.tables, **paper.figures}
    for name, spec in specs.items():
        yield name, "dataset", spec.datasets, paper.datasets
        yield name, "method", spec.methods, paper.methods
        yield name, "setting", spec.settings, paper.settings
    if paper.tune is not None:
        yield "tune", "dataset", paper.tune.per_dataset, paper.datasets
        yield "tune", "setting", paper.tune.setting, paper.settings
    for claim in paper.claims:
        yield "claims", "table or figure", [claim.table], specs
        yield "claims", "method", [*claim.method, *claim.over], paper.methods


def load_scale(name: str, config_dir: Path = CONFIG_DIR) -> Scale:
    """Read ``config/scales/<name>.yaml``."""
    data = {"name": name, **_load_named("scale", name, config_dir / "scales")}
    return validated(Scale, data, config_dir / "scales" / f"{name}.yaml")


def load_tuned(paper: str, dataset: str, config_dir: Path = CONFIG_DIR) -> dict[str, dict[str, Any]]:
    """Read the tuned hyper-parameters of each method on one dataset; empty where nothing was tuned."""
    path = config_dir / "tuned" / paper / f"{dataset}.yaml"
    return _chosen(path.resolve(), path.stat().st_mtime_ns) if path.exists() else {}


@functools.lru_cache(maxsize=64)
def _chosen(path: Path, _changed: int) -> dict[str, dict[str, Any]]:
    """Parse a file of tuned values once: every run of a paper asks for it."""
    chosen: dict[str, dict[str, Any]] = read_yaml(path)["chosen"]
    return chosen


def paper_keys(config_dir: Path = CONFIG_DIR) -> list[str]:
    """List the papers the configuration knows."""
    return sorted(path.stem for path in (config_dir / "papers").glob("*.yaml"))


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key, later ones winning; nested mappings merge, ``None`` removes a key."""
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
