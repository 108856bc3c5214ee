"""What a user writes: the configuration, the papers' experiments and the scales, read and checked."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field

from fedbench.errors import UserError, unknown
from fedbench.extend import extended
from fedbench.specs import Spec, validated

Value = bool | int | float | str


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is given twice; it would count as two repeats")
    return seeds


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_distinct)]
CONFIG_DIR = Path("config")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, where PyYAML has it: ten times faster


class Config(Spec):
    """What a user edits: ``config/config.yaml``, overridden by ``--config key=value``."""

    scale: str = "demo"
    paper: str = "localscgdam"
    seeds: Seeds | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    client_chunk: int | None = Field(None, ge=1)
    checkpoint_seconds: float = Field(30.0, ge=0)
    data_dir: str = "data"
    mirror: str | None = None
    datasets: list[str] | None = None
    tolerance: float = Field(0.01, ge=0)


class DatasetEntry(Spec):
    """One dataset of a paper under the label it prints; ``printed: false`` for our own additions.

    ``fixed`` is laid over everything else, settings included: what a small stand-in cannot follow, said in ``note``.
    """

    printed: bool = True
    note: str = ""
    data: dict[str, Any]
    network: dict[str, Any]
    train: dict[str, Any] = {}
    fixed: dict[str, Any] = {}


class MethodEntry(Spec):
    """One method of a paper: the algorithm's file name and every hyper-parameter; ``grid`` is what tuning tries."""

    algorithm: str
    params: dict[str, Any] = {}
    train: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}


class SettingEntry(Spec):
    """One thing a table varies: the places of the run specification it sets, and its default.

    ``values`` translates a value into what is set; the place ``.`` takes a translation that is a piece of a run
    specification itself.
    """

    sets: list[str]
    default: Value
    label: str
    values: dict[Value, Any] = {}


class TableSpec(Spec):
    """Which cells make the rows and columns of a table, and which published file it is held against."""

    title: str
    kind: Literal["results", "data"] = "results"
    datasets: list[str]
    methods: list[str] = []
    settings: dict[str, list[Value]] = {}
    metrics: list[str] = []
    rows: list[str] = []
    columns: list[str] = []
    published: str | None = None
    caption: str = ""


class FigureSpec(Spec):
    """Which curves a figure shows and what its panels are."""

    title: str
    kind: Literal["curves", "duals"] = "curves"
    panels: str
    datasets: list[str]
    methods: list[str]
    settings: dict[str, list[Value]]
    metrics: list[str]
    x: Literal["iteration", "round"] = "iteration"
    caption: str = ""


class ClaimSpec(Spec):
    """A sentence of the paper that the numbers can support or not: ``method`` beats ``over`` in ``metric``."""

    text: str
    table: str
    method: list[str]
    over: list[str]
    metric: str


class TrialSpec(Spec):
    """What trials on one dataset have of their own."""

    train: dict[str, Any] = {}
    seeds: list[int] | None = None


class TuneSpec(Spec):
    """How hyper-parameters are chosen: on which setting, how long a trial is, how many a method gets.

    A trial is a run for each of ``seeds``, which are none of the final runs', as long as it leads
    (:func:`fedbench.tune.race`). ``per_dataset`` changes ``train`` and ``seeds`` on a dataset, for all methods alike.
    """

    setting: dict[str, Value]
    trials: int = Field(ge=1)
    metric: str
    validation: float = Field(gt=0, lt=1)
    train: dict[str, Any] = {}
    per_dataset: dict[str, TrialSpec] = {}
    seeds: list[int] = Field(min_length=1)

    def on(self, dataset: str) -> TuneSpec:
        """Return what holds on a dataset, with nothing left that depends on it."""
        own = self.per_dataset.get(dataset, TrialSpec())
        changed = {"train": {**self.train, **own.train}, "seeds": own.seeds or self.seeds, "per_dataset": {}}
        return self.model_copy(update=changed)


class ScalePaper(Spec):
    """What one scale runs of one paper (``None``: all its datasets), and what it shortens."""

    datasets: list[str] | None = None
    stand_in: str | None = None
    train: dict[str, Any] = {}
    per_dataset: dict[str, dict[str, Any]] = {}


class Paper(Spec):
    """The experiments of one paper.

    One that ``extends`` another takes over what that defines (:mod:`fedbench.extend`); ``defined`` is what its own
    file adds or changes. ``scales`` says here what a file under ``config/scales`` could say about it.
    """

    key: str
    extends: str | None = None
    title: str
    citation: str
    defaults: dict[str, Any] = {}
    datasets: dict[str, DatasetEntry]
    methods: dict[str, MethodEntry]
    settings: dict[str, SettingEntry] = {}
    tables: dict[str, TableSpec] = {}
    figures: dict[str, FigureSpec] = {}
    claims: list[ClaimSpec] = []
    tune: TuneSpec | None = None
    scales: dict[str, ScalePaper] = {}
    defined: dict[str, list[str]] = {}

    def defines(self, dataset: str, method: str) -> bool:
        """Say whether this paper's own file, and not the one it extends, has the word on a dataset or a method."""
        return dataset in self.defined.get("datasets", []) or method in self.defined.get("methods", [])


class Scale(Spec):
    """How much is computed: never what."""

    name: str
    description: str
    seeds: Seeds
    papers: dict[str, ScalePaper]


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
    """Read ``config/papers/<key>.yaml`` and check that its tables and figures name things it defines."""
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
    specs: Mapping[str, TableSpec | FigureSpec] = {**paper.tables, **paper.figures}
    for name, spec in specs.items():
        for kind, used, defined in (
            ("dataset", spec.datasets, paper.datasets),
            ("method", spec.methods, paper.methods),
            ("setting", spec.settings, paper.settings),
        ):
            for item in used:
                if item not in defined:
                    raise UserError(f"{source}: {name}: {unknown(kind, item, defined)}")
    for item in paper.tune.per_dataset if paper.tune else ():
        if item not in paper.datasets:
            raise UserError(f"{source}: tune: {unknown('dataset', item, paper.datasets)}")
    return paper


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
