"""Reads the configuration: the user's own, the papers' experiments, the scales and what was tuned."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedbench import files, safe_yaml, sealed_json
from fedbench.errors import UserError, shortened, unknown
from fedbench.project import Folder, named
from fedbench.spec import validated
from fedbench.study import expand_sites, layers, references
from fedbench.study.claim_checks import claim_mistakes
from fedbench.study.extend import extended
from fedbench.study.schema import COURSE, Config, FigureSpec, Paper, Scale, TableSpec, Value
from fedbench.study.tuning import Trials
from fedbench.study.unread import unread

CONFIG_DIR = Folder("config")
STUDIES = ("papers", "studies")
"""Its folders with a YAML for each paper, and for each study that is no paper."""
AXES = ("dataset", "method", "metric")
"""What varies in tables and figures besides settings."""


def read_yaml(path: Path) -> Any:
    """Read a YAML file; a missing or broken one is a :class:`UserError` naming it."""
    return copy.deepcopy(_content(path))


def _content(path: Path) -> dict[str, Any]:
    """Return what a YAML file holds, not to be changed; a file that has not changed is parsed once."""
    content = _parse(path, files.mark(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no keys but {shortened(content)}")
    return content


@functools.lru_cache(maxsize=256)
def _parse(path: Path, _mark: files.Mark | None) -> Any:
    content = safe_yaml.read_yaml(path)
    return {} if content is None else content


def load_config(overrides: Mapping[str, Any] | None = None) -> Config:
    """Read the user's configuration; ``overrides`` (``--config``) win, and ``null`` keeps the file's value."""
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    for key, kind in (("seeds", int), ("datasets", str)):
        if isinstance(given.get(key), str | int):
            parts = [part.strip() for part in str(given[key]).split(",")]
            if kind is int and not all(
                part.isdecimal() and part.isascii() and len(part) < 20 for part in parts
            ):
                raise UserError(
                    f"seeds: {shortened(given[key])!r} is not a list of whole numbers such as 0,1,2"
                )
            given[key] = [kind(part) for part in parts]
    if given.get("set"):
        given["set"] = layers.given(given["set"])
    for key in overrides or {}:
        if key not in Config.model_fields:
            raise unknown("key of the configuration", key, Config.model_fields)
    path = CONFIG_DIR / "config.yaml"
    return validated(Config, {**read_yaml(path), **given}, path)


def check_mirror(config: Config) -> None:
    """Refuse a mirror that is a folder and does not exist: a download would say so after an hour of training."""
    mirror = config.mirror
    if mirror is not None and "://" not in mirror and not Path(mirror).expanduser().is_dir():
        raise UserError(f"mirror: {mirror} does not exist; give a folder or an address, or leave it out")


def _load_named(kind: str, name: str, folder: Path) -> Any:
    known = {path.stem: path for path in folder.glob("*.yaml")}
    if name not in known:
        raise unknown(kind, name, known)
    return read_yaml(known[name])


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
    for place, kind, used, defined in _names(paper):
        for item in used:
            if item not in defined:
                raise UserError(f"{source}: {place}: {unknown(kind, item, defined)}")
    paper = expand_sites.expanded(paper, CONFIG_DIR / "datasets")
    for mistake in _impossible(paper):
        raise UserError(f"{source}: {mistake}")
    for place, metrics in _metrics(paper):
        for metric in metrics:
            try:
                paper.measure(metric)
            except UserError as error:
                raise UserError(f"{source}: {place}: {error}") from None
    for mistake in claim_mistakes(paper):
        raise UserError(f"{source}: {mistake}")
    return paper


def _names(paper: Paper) -> Iterator[tuple[str, str, Iterable[str], Iterable[str]]]:
    """List what the parts of a paper name: the part, the kind of thing, the names, and those there are."""
    for name, spec in paper.targets.items():
        yield name, "dataset", spec.datasets, paper.datasets
        yield name, "method", spec.methods, paper.methods
        yield name, "setting", spec.settings, paper.settings
    for name, figure in paper.figures.items():
        yield name, "panels of a figure", figure.panel_axes, [*AXES, *paper.settings]
        x = [*paper.settings] if figure.kind == "final" else COURSE
        yield name, f"x of a figure of kind {figure.kind}", [figure.x], x
    for name, what in paper.settings.items():
        yield f"{name}: datasets", "dataset", what.datasets, paper.datasets
    for name, plan in paper.scales.items():
        yield f"scales: {name}", "setting", plan.settings, paper.settings
    for name, table in paper.tables.items():
        yield f"{name}: additions", "dataset", table.additions or [], paper.datasets
        yield f"{name}: pool", "setting", table.pool, paper.settings
        yield (name, "row or column", [*table.rows, *table.columns], [*AXES, "split", *paper.settings])
    earlier: list[str] = []
    for name, method in paper.methods.items():
        yield f"{name}: twin", "earlier method", [method.twin.of] if method.twin else [], list(earlier)
        earlier.append(name)
        for part, chosen in (("only", method.only), ("at", method.at)):
            yield f"{name}: {part}", "setting", chosen, ["dataset", *paper.settings]
            for setting, values in chosen.items():
                yield f"{name}: {part}: {setting}", "value", map(str, values), _values(paper, setting)
    if paper.tune is not None:
        yield "tune", "dataset", paper.tune.per_dataset, paper.datasets
        short = [name for stable in paper.tune.stables() for name in stable.setting]
        yield "tune", "setting", [*paper.tune.setting, *short, *paper.tune.each], paper.settings


def _values(paper: Paper, setting: str) -> set[str]:
    """Collect the values that a setting takes anywhere in a paper; those of ``dataset`` are its datasets."""
    if setting == "dataset":
        return {*paper.datasets}
    entry = paper.settings[setting]
    shown = {value for spec in paper.targets.values() for value in spec.settings.get(setting, [])}
    tried = {paper.tune.setting[setting]} if paper.tune and setting in paper.tune.setting else set()
    return {str(value) for value in {entry.default, *entry.values, *shown, *tried}}


def _impossible(paper: Paper) -> Iterator[str]:
    """List what fits no cell: methods of a table or figure without one, grids that a setting would overrule."""
    for name, spec in paper.targets.items():
        for field in ("datasets", "methods", "metrics"):
            if twice := _twice(getattr(spec, field)):
                yield f"{name}: {field}: {', '.join(twice)} is listed twice; name each once"
        for method in spec.methods:
            for setting, values in paper.methods[method].only.items():
                asked = _asked(paper, spec, setting)
                if not set(asked) & set(values):
                    yield f"{name}: {method} has only {setting} {_words(values)}, not {_words(asked)}"
        for setting, values in spec.settings.items():
            datasets = [*map(str, _asked(paper, spec, "dataset"))]
            if (
                {*values} - {paper.settings[setting].default}
                and datasets
                and all(setting in unread(paper, dataset) for dataset in datasets)
            ):
                yield f"{name}: settings: {setting} changes nothing on {_words(datasets)}; leave it out"
    for name, table in paper.tables.items():
        if twice := _twice([*table.rows, *table.columns]):
            yield f"{name}: {', '.join(twice)} is in rows and columns twice; name each once"
    for name, figure in paper.figures.items():
        if figure.kind == "final":
            yield from _not_numeric(paper, name, figure)
        if figure.kind != "pareto" and len(figure.datasets) > 1 and "dataset" not in figure.panel_axes:
            yield f"{name}: several datasets need panels: dataset"
    places = {place: name for name, entry in paper.settings.items() for place in entry.sets}
    for name, entry in paper.methods.items():
        tried = {part for key in entry.grid for part in key.split(", ")}
        for place in sorted(tried & places.keys()):
            yield f"{name}: grid: {place} is what the setting {places[place]} sets, so that tuning it changes no cell"


def _twice(names: list[str]) -> list[str]:
    """Return the names that stand in a list more than once."""
    return sorted({name for name in names if names.count(name) > 1})


def _asked(paper: Paper, spec: TableSpec | FigureSpec, axis: str) -> list[Value]:
    """Return the values of a setting, or the datasets, that a table or figure asks for."""
    if axis == "dataset":
        return [*spec.datasets, *(getattr(spec, "additions", None) or [])]
    return spec.settings.get(axis, [paper.settings[axis].default])


def _not_numeric(paper: Paper, name: str, figure: FigureSpec) -> Iterator[str]:
    values = figure.settings.get(figure.x, [paper.settings[figure.x].default])
    words = [value for value in values if isinstance(value, bool | str)]
    if words:
        yield f"{name}: x: {figure.x} takes {_words(words)} here, which is no number to draw against"
    if figure.x in figure.panel_axes:
        yield f"{name}: {figure.x} is x and panels; name it once"


def _words(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _metrics(paper: Paper) -> Iterator[tuple[str, Sequence[str]]]:
    """List where a paper names metrics, and which."""
    for kind, specs in (("tables", paper.tables), ("figures", paper.figures)):
        for name, spec in specs.items():
            yield f"{kind}.{name}.metrics", spec.metrics
    if paper.tune is not None:
        yield "tune.metric", [paper.tune.metric]


def scale_of(config: Config) -> Scale:
    """Read the scale that is asked for, with the constants that are."""
    scale = load_scale(config.scale)
    return scale if config.constants is None else scale.model_copy(update={"constants": config.constants})


def load_scale(name: str) -> Scale:
    """Read ``config/scales/<name>.yaml``."""
    data = {"name": name, **_load_named("scale", name, CONFIG_DIR / "scales")}
    return validated(Scale, data, CONFIG_DIR / "scales" / f"{name}.yaml")


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


def tuned_path(paper: Paper, dataset: str, setting: Mapping[str, Value]) -> Path:
    """Return the file of what was tuned for a setting: one a dataset, or one for each value of ``tune.each``.

    :func:`fedbench.study.tuned.tuned_for` says where the choices that a scale has for itself are.
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
    """Parse a file of tuned values once, and hold it against its checksum; one written by hand has none."""
    content: dict[str, Any] = read_yaml(path)
    given = content.pop("checksum", None)
    try:
        unchanged = given is None or given == sealed_json.checksum(content)
    except TypeError:  # a date or the like, which no trial writes
        unchanged = False
    if not unchanged:
        raise UserError(
            f"{path} is not what `fedbench tune` wrote: bring it back, or remove the line `checksum` if you changed it"
        )
    try:
        Trials.model_validate(content)
    except ValidationError as error:
        section = str((*error.errors()[0]["loc"], "chosen")[0])
        raise UserError(
            f"{path}: `{section}` is missing or not as `fedbench tune` writes it; remove "
            + ("the file" if section == "chosen" else "it")
        ) from None
    return content


def scale_names() -> list[str]:
    """List the scales the configuration knows."""
    return sorted(path.stem for path in (CONFIG_DIR / "scales").glob("*.yaml"))


def paper_keys() -> list[str]:
    """List the papers and studies that the configuration knows."""
    return sorted({path.stem for folder in STUDIES for path in (CONFIG_DIR / folder).glob("*.yaml")})
