"""Reads the configuration: the user's own, the papers' experiments, and the scales."""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedbench import files, safe_yaml
from fedbench.errors import UserError, shortened, unknown
from fedbench.project import Folder, named
from fedbench.spec import RunSpec, validated
from fedbench.study import checks, layers, references
from fedbench.study.extend import extended
from fedbench.study.references import Shown
from fedbench.study.schema import Config, Paper, Scale

CONFIG_DIR = Folder("config")
STUDIES = ("papers", "studies")
"""Its folders with a YAML for each paper, and for each study that is no paper."""
EVERY_SITE = "@sites"


def read_yaml(path: Path) -> Any:
    """Read a YAML file; a missing or broken one is a :class:`UserError` naming it."""
    content = copy.deepcopy(_parse(path, files.mark(path)))
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no keys but {shortened(content)}")
    return content


@functools.lru_cache(maxsize=256)
def _parse(path: Path, _mark: files.Mark | None) -> Any:
    """Parse a file once while it stays as it is."""
    content = safe_yaml.read_yaml(path)
    return {} if content is None else content


def load_config(overrides: Mapping[str, Any] | None = None, source: str = "the arguments") -> Config:
    """Read the user's configuration; ``overrides`` win, and ``null`` keeps the file's value.

    Raises:
        UserError: a key is unknown or a value wrong; the message names the file, or the ``source`` of the overrides.
    """
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    lists = {
        key: [part.strip() for part in str(given[key]).split(",")]
        for key in ("seeds", "datasets")
        if isinstance(given.get(key), str | int)
    }
    if not all(re.fullmatch("[0-9]{1,19}", seed) for seed in lists.get("seeds", [])):
        raise UserError(f"seeds: {shortened(given['seeds'])!r} is not a list of whole numbers such as 0,1,2")
    given |= lists
    if given.get("set"):
        given["set"] = layers.given(given["set"])
    for key in overrides or {}:
        if key not in Config.model_fields:
            pieces = RunSpec.model_fields.items()
            places = [
                f"{name}.{key}" for name, of in pieces if key in getattr(of.annotation, "model_fields", ())
            ]
            raise unknown("key of the configuration", key, [*Config.model_fields, *places])
    validated(Config, given, source)  # what is wrong with them is not the file's mistake
    path = CONFIG_DIR / "config.yaml"
    return validated(Config, {**read_yaml(path), **given}, path)


def check_mirror(config: Config) -> None:
    """Refuse a mirror that is a folder and does not exist: a download would say so after an hour of training."""
    mirror = config.mirror
    if mirror is not None and "://" not in mirror and not Path(mirror).expanduser().is_dir():
        raise UserError(f"mirror: {mirror} does not exist; give a folder or an address, or leave it out")


def load_paper(key: str) -> Paper:
    """Read the YAML of a paper or study and check that all its parts name things it defines."""
    if key not in (known := paper_keys()):
        raise unknown("paper", key, known)
    source = study_path(key)
    if source.parent.name == "studies" and (twice := CONFIG_DIR / f"papers/{key}.yaml").is_file():
        raise UserError(f"{source} and {twice} have one name: rename one of them")
    content = read_yaml(source)
    if (base := content.get("extends")) is not None:
        if base not in known or base == key:
            known.remove(key)
            raise UserError(f"{source}: {unknown('paper to extend', str(base), known)}")
        below = read_yaml(study_path(base))
        if "extends" in below:
            raise UserError(f"{source} extends {base}, which extends another paper itself; extend that one")
        load_paper(base)  # its mistakes are its own
        content = extended(base, below, content)
    paper = references.expanded(validated(Paper, {**content, "key": key}, source))
    for mistake in checks.unknown_names(paper):
        raise UserError(f"{source}: {mistake}")
    paper = _with_sites(paper)
    for mistake in checks.mistakes(paper):
        raise UserError(f"{source}: {mistake}")
    return paper


def _with_sites(paper: Paper) -> Paper:
    """Return a study whose tables and figures name one metric for each site of their datasets, not ``@sites``.

    A dataset that is not here keeps its ``@sites``: that it is missing is said when it is prepared.
    """
    return paper.model_copy(
        update={
            "tables": {name: _of_each_site(paper, spec) for name, spec in paper.tables.items()},
            "figures": {name: _of_each_site(paper, spec) for name, spec in paper.figures.items()},
        }
    )


def _of_each_site(paper: Paper, spec: Shown) -> Shown:
    if not any(metric.endswith(EVERY_SITE) for metric in spec.metrics):
        return spec
    sites = list(dict.fromkeys(_sites(paper, spec.datasets))) or [EVERY_SITE[1:]]
    metrics = [
        f"{metric.removesuffix(EVERY_SITE)}@{site}" if metric.endswith(EVERY_SITE) else metric
        for metric in spec.metrics
        for site in sites
    ]
    return spec.model_copy(update={"metrics": list(dict.fromkeys(metrics))})


def _sites(paper: Paper, labels: Sequence[str]) -> Iterator[str]:
    from fedbench.data.datasets import site_names  # the paths of most commands do without the data

    for label in labels:
        data = {**layers.part_of(paper.defaults, "data"), **paper.datasets[label].data}
        with contextlib.suppress(UserError):
            yield from site_names(layers.datasets_of(data)) or ()


def scale_of(config: Config) -> Scale:
    """Read the scale that is asked for, with the constants that are."""
    scale = load_scale(config.scale)
    return scale if config.constants is None else scale.model_copy(update={"constants": config.constants})


def load_scale(name: str) -> Scale:
    """Read ``config/scales/<name>.yaml``."""
    if name not in (known := scale_names()):
        raise unknown("scale", name, known)
    path = CONFIG_DIR / f"scales/{name}.yaml"
    return validated(Scale, {"name": name, **read_yaml(path)}, path)


def file_of(paper: Paper, kind: str, name: str) -> Path:
    """Return the file that says what an entry of a study is (``kind``: datasets, methods, settings).

    It is the study's own unless the study takes the entry over, unchanged, from the one that it extends.
    """
    key = paper.key if name in paper.defined.get(kind, []) else paper.extends or paper.key
    return Path(named(study_path(key)))


def study_path(key: str) -> Path:
    """Return the YAML of a study: in ``config/studies/`` if it is there, else where that of a paper is."""
    path = CONFIG_DIR / f"studies/{key}.yaml"
    return path if path.is_file() else CONFIG_DIR / f"papers/{key}.yaml"


def source_of(key: str, chosen: Mapping[str, Any]) -> str:
    """Name what the runs of a study are written in: its YAML, and what a call ``chosen`` sets of them."""
    return f"{study_path(key)} with {layers.as_options(chosen)}" if chosen else str(study_path(key))


def scale_names() -> list[str]:
    """List the scales the configuration knows."""
    return sorted(path.stem for path in (CONFIG_DIR / "scales").glob("*.yaml"))


def paper_keys() -> list[str]:
    """List the papers and studies that the configuration knows."""
    return sorted({path.stem for folder in STUDIES for path in (CONFIG_DIR / folder).glob("*.yaml")})
