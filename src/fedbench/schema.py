"""What configuration files may say: the user's own, the papers' experiments and the scales."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from fedbench.errors import unknown
from fedbench.specs import Spec

Value = bool | int | float | str


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is given twice; it would count as two repeats")
    return seeds


MEASURED = ("auc", "ap", "overall_accuracy", "minority_accuracy")
"""What :mod:`fedbench.evaluate` measures, on the test and on the validation part."""


def _measured(metric: str) -> str:
    """Refuse what looks like a measured metric and is none; a method may report others under names of its own."""
    known = [f"{part}_{name}" for part in ("test", "val") for name in MEASURED]
    if any(f"{metric}_".startswith(f"{name}_") for name in known):  # or with an ending such as _h
        return metric
    meant = metric.startswith(("test_", "val_")) or metric in MEASURED
    if meant or difflib.get_close_matches(metric, known, n=1, cutoff=0.75):
        raise ValueError(f"{unknown('metric', metric, known)}")
    return metric


def _on_validation(metric: str) -> str:
    if not metric.startswith("val_"):
        raise ValueError(f"{metric!r} is not measured on validation data: choose one that begins with val_")
    return metric


Metric = Annotated[str, AfterValidator(_measured)]
Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_distinct)]


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
    metrics: list[Metric] = []
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
    metrics: list[Metric]
    x: Literal["iteration", "round"] = "iteration"
    caption: str = ""


class ClaimSpec(Spec):
    """A sentence of the paper that the numbers can support or not: ``method`` beats ``over`` in ``metric``."""

    text: str
    table: str
    method: list[str]
    over: list[str]
    metric: Metric


class TrialSpec(Spec):
    """What trials on one dataset have of their own."""

    train: dict[str, Any] = {}
    seeds: Seeds | None = None


class TuneSpec(Spec):
    """How hyper-parameters are chosen: on which setting, how long a trial is, how many a method gets.

    A trial is a run for each of ``seeds``, which are none of the final runs', as long as it leads
    (:func:`fedbench.tune.race`). ``per_dataset`` changes ``train`` and ``seeds`` on a dataset, for all methods alike.
    """

    setting: dict[str, Value]
    trials: int = Field(ge=1)
    metric: Annotated[Metric, AfterValidator(_on_validation)]
    validation: float = Field(gt=0, lt=1)
    train: dict[str, Any] = {}
    per_dataset: dict[str, TrialSpec] = {}
    seeds: Seeds

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
