"""What configuration files may say: the user's own, the papers' experiments and the scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fedbench import measures
from fedbench.measures import Measure
from fedbench.plan.claims import ClaimSpec
from fedbench.plan.claims import Value as Value
from fedbench.specs import Name, Spec


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is given twice; it would count as two repeats")
    return seeds


def _on_validation(metric: str) -> str:
    if not metric.startswith("val_"):
        raise ValueError(f"{metric!r} is not measured on validation data: choose one that begins with val_")
    return metric


def _folder(path: str) -> str:
    if set(path) & {"{", "}"} or not path.isprintable():
        raise ValueError(
            "braces and control characters in the name of this folder mean something to Snakemake"
        )
    return path


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_distinct)]


def _named(entries: Any) -> Any:
    """Give each measure the name it stands under."""
    if not isinstance(entries, Mapping):
        return entries
    return {
        name: {**entry, "name": name} if isinstance(entry, Mapping) else entry
        for name, entry in entries.items()
    }


Measures = Annotated[dict[str, Measure], BeforeValidator(_named)]


Constants = Literal["paper", "tuned"]
"""Whose hyper-parameters count where trials chose others than were published."""


class Config(Spec):
    """What a user edits: ``config/config.yaml``, overridden by ``--config key=value``."""

    scale: str = "demo"
    paper: str = "localscgdam"
    seeds: Seeds | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    client_chunk: int | None = Field(None, ge=1)
    compile: bool = False
    checkpoint_seconds: float = Field(30.0, ge=0)
    data_dir: Annotated[str, AfterValidator(_folder)] = "data"
    mirror: str | None = None
    datasets: list[str] | None = None
    tolerance: float = Field(0.01, ge=0)
    shipped: bool = True
    constants: Constants | None = None
    set: dict[str, Any] = {}


PIECES = ("data", "network", "train", "task", "start")
"""The parts of a run specification that a dataset or a method can lay over a paper's defaults."""


class Entry(Spec):
    """What datasets and methods have in common."""

    train: dict[str, Any] = {}
    task: dict[str, Any] | None = None
    start: dict[str, Any] | None = None

    def piece(self) -> dict[str, Any]:
        """Return what is written here as a piece of a run specification; a written ``null`` takes away."""
        return {name: getattr(self, name) for name in PIECES if name in self.model_fields_set}


class DatasetEntry(Entry):
    """One dataset of a paper under the label it prints; ``printed: false`` for our own additions.

    ``fixed`` is laid over everything else, settings included: what a small stand-in cannot follow, said in ``note``.
    """

    printed: bool = True
    note: str = ""
    data: dict[str, Any]
    network: dict[str, Any]
    fixed: dict[str, Any] = {}


class MethodEntry(Entry):
    """One method of a paper: the algorithm's file name and every hyper-parameter; ``grid`` is what tuning tries.

    ``only`` names the values of settings, or datasets, at which the method is run; elsewhere it has no cell. ``at``
    gives, for values of a setting or for datasets, a piece of a run specification that is laid over the settings. A key
    of ``grid`` with dots is a place in the run specification (``train.decay_at``), any other a hyper-parameter.
    ``published`` names those of ``params`` that are the paper's or its program's: they stand before tuned ones where
    ``constants`` is ``paper``.
    """

    algorithm: Name
    params: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    published: list[str] = []
    only: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    at: dict[str, dict[Value, dict[str, Any]]] = {}

    @model_validator(mode="after")
    def _published_are_given(self) -> MethodEntry:
        """Refuse a published hyper-parameter without its value."""
        if lost := [name for name in self.published if name not in self.params]:
            raise ValueError(f"published: {lost[0]!r} is none of params")
        return self

    def has(self, place: Mapping[str, Value]) -> bool:
        """Say whether the method is run at a place: a dataset and a setting, or a part of them."""
        return all(place[name] in values for name, values in self.only.items() if name in place)


class SettingEntry(Spec):
    """One thing a table varies: the places of the run specification it sets, and its default.

    ``values`` translates a value into what is set; the place ``.`` takes a translation that is a piece of a run
    specification itself. On datasets other than ``datasets``, if some are named, the setting sets nothing.
    """

    sets: list[str]
    default: Value
    label: str
    values: dict[Value, Any] = {}
    datasets: list[str] = []

    def holds(self, dataset: str) -> bool:
        """Say whether the setting sets something on a dataset."""
        return not self.datasets or dataset in self.datasets


class BoardSpec(Spec):
    """What a leaderboard has besides its methods.

    ``random`` is the method in whose place a failed cell counts, ``ceiling`` the one trained without federation: both
    are shown without a rank. With ``budget`` the board is not of the end of training, but of the last evaluation within
    an amount, fixed for each dataset in ``within``; it tells when the first metric reaches the target in ``to``.
    """

    random: str
    ceiling: str | None = None
    budget: Literal["floats_up", "samples", "seconds"] | None = None
    within: dict[str, Annotated[float, Field(gt=0)]] = {}
    to: dict[str, float] = {}

    @property
    def controls(self) -> list[str]:
        """The methods without a rank."""
        return [name for name in (self.random, self.ceiling) if name]


class TableSpec(Spec):
    """Which cells make the rows and columns of a table, and which published file it is held against.

    ``additions`` lists which of the datasets that the paper does not print stand in the table too, if the scale runs
    them; ``null``: all of them. ``average`` names an axis that gets the average over its values beside them, taken seed
    by seed. The cells of ``pool``, a list of settings, are repeats of one number. ``rounds_to`` adds the metric "rounds
    until a curve first reaches a target", for one target or several: ``{test_auc: 0.975}``.

    ``kind`` is ``results``; ``rates``: exponents fitted over the settings of ``pool``, which are budgets; ``data``: the
    datasets as partitioned; ``facts``: counts of ``splits`` of the data (``all``: before anything is dropped), held
    against print; or ``leaderboard``: methods ranked by the first metric on each dataset, as ``board`` says, without
    ``rows`` and ``columns``. One that names no methods has all of the paper's.
    """

    title: str
    kind: Literal["results", "rates", "data", "facts", "leaderboard"] = "results"
    datasets: list[str]
    additions: list[str] | None = None
    methods: list[str] = []
    settings: dict[str, list[Value]] = {}
    metrics: list[str] = []
    rounds_to: dict[str, float | list[float]] = {}
    rows: list[str] = []
    columns: list[str] = []
    splits: Annotated[list[Literal["all", "Training", "Validation", "Test"]], Field(min_length=1)] = ["all"]
    average: str | None = None
    pool: list[str] = []
    published: str | None = None
    caption: str = ""
    board: BoardSpec | None = None

    @model_validator(mode="after")
    def _board_fits(self) -> TableSpec:
        if (self.kind == "leaderboard") != (self.board is not None):
            raise ValueError("kind leaderboard and board go together")
        if self.board is not None and self.board.budget is not None:
            for name, given in (("within", self.board.within), ("to", self.board.to)):
                if lost := [dataset for dataset in self.datasets if dataset not in given]:
                    raise ValueError(f"board: {name} says nothing of {lost[0]}; fix it beforehand")
        return self

    def metrics_on(self, dataset: str) -> list[str]:
        """Return what is measured on a dataset: ``metrics``, or those within the board's budget, then its target."""
        board = self.board
        if board is None or board.budget is None:
            return self.metrics
        found = [measures.within(metric, board.budget, board.within[dataset]) for metric in self.metrics]
        return [*found, measures.rounds_to(self.metrics[0], board.to[dataset], board.budget)]

    @model_validator(mode="before")
    @classmethod
    def _targets(cls, data: Any) -> Any:
        """Write the targets of ``rounds_to`` as metrics."""
        if not isinstance(data, Mapping) or not isinstance(data.get("rounds_to"), Mapping):
            return data
        found = [*data.get("metrics", [])]
        for metric, values in data["rounds_to"].items():
            found += [
                measures.rounds_to(metric, value)
                for value in (values if isinstance(values, list) else [values])
            ]
        return {**data, "metrics": list(dict.fromkeys(found))}


COURSE = ("iteration", "round", "cycle", "samples", "floats_up", "seconds")
"""What a curve can be drawn against."""


class FigureSpec(Spec):
    """What a figure shows, against what, and what its panels are.

    ``kind``: ``curves`` over the course of training, ``final`` values against a setting, ``duals`` of every client,
    ``pareto``: final values of all methods (those of the paper, if none is named) against what they cost. ``x`` is one
    of :data:`COURSE`, or for ``final`` a setting with numbers for values. ``panels`` is an axis (dataset, method, a
    setting or metric), or two: one for the rows, one for the columns. ``log`` names the axes that are logarithmic.
    """

    title: str
    kind: Literal["curves", "final", "duals", "pareto"] = "curves"
    panels: str | Annotated[list[str], Field(min_length=1, max_length=2)]
    datasets: list[str]
    methods: list[str]
    settings: dict[str, list[Value]]
    metrics: list[str]
    x: str = "iteration"
    log: Literal["", "x", "y", "xy"] = ""
    caption: str = ""

    @model_validator(mode="after")
    def _pareto_fits(self) -> FigureSpec:
        if self.kind == "pareto" and (
            self.x not in ("floats_up", "samples", "seconds")
            or self.panels != "dataset"
            or len(self.metrics) != 1
        ):
            raise ValueError(
                "kind pareto takes panels: dataset, one metric, and floats_up, samples or seconds for x"
            )
        return self

    @property
    def panel_axes(self) -> list[str]:
        """What its panels are, as a list."""
        return [self.panels] if isinstance(self.panels, str) else self.panels


class TrialSpec(Spec):
    """What trials on one dataset have of their own."""

    metric: Annotated[str, AfterValidator(_on_validation)] | None = None
    train: dict[str, Any] = {}
    seeds: Seeds | None = None


class TuneSpec(Spec):
    """How hyper-parameters are chosen: on which setting, how long a trial is, how many a method gets.

    A trial is a run for each of ``seeds``, which are none of the final runs', as long as it leads
    (:func:`fedbench.jobs.tune.race`). ``validation`` is the share of the training data held out for it; left out, the
    runs have a validation part as they are configured. ``per_dataset`` changes metric, ``train`` and seeds, for all
    methods alike. With ``each``, everything is tuned apart at each of some values of a setting, such as every
    communication window, with the same trials; elsewhere nothing is.
    """

    late: ClassVar[tuple[str, ...]] = ("each",)

    setting: dict[str, Value]
    each: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field({}, max_length=1)
    trials: int = Field(ge=1)
    metric: Annotated[str, AfterValidator(_on_validation)]
    validation: float | None = Field(None, gt=0, lt=1)
    train: dict[str, Any] = {}
    per_dataset: dict[str, TrialSpec] = {}
    seeds: Seeds

    def on(self, dataset: str) -> TuneSpec:
        """Return what holds on a dataset, with nothing left that depends on it."""
        own = self.per_dataset.get(dataset, TrialSpec())
        changed = {
            "metric": own.metric or self.metric,
            "train": {**self.train, **own.train},
            "seeds": own.seeds or self.seeds,
            "per_dataset": {},
        }
        return self.model_copy(update=changed)

    def at(self, values: Mapping[str, Value]) -> TuneSpec:
        """Return what holds at values of the settings in ``each``, with nothing left that depends on them."""
        return self.model_copy(update={"setting": {**self.setting, **values}, "each": {}})

    def points(self) -> list[dict[str, Value]]:
        """List where everything is tuned: one empty dict without ``each``."""
        return [{name: value} for name, values in self.each.items() for value in values] or [{}]


class ScalePaper(Spec):
    """What one scale runs of one paper (``None``: all its datasets), and what it shortens.

    ``settings`` lists the values of a setting that the scale runs, where it does not run all that a table names.
    """

    datasets: list[str] | None = None
    stand_in: str | None = None
    settings: dict[str, list[Value]] = {}
    train: dict[str, Any] = {}
    per_dataset: dict[str, dict[str, Any]] = {}


def _entered(specs: Any, methods: list[str]) -> Any:
    if not isinstance(specs, Mapping):
        return specs or {}
    return {
        name: {**spec, "methods": spec.get("methods") or methods}
        if isinstance(spec, Mapping) and spec.get("kind") in ("leaderboard", "pareto")
        else spec
        for name, spec in specs.items()
    }


class Paper(Spec):
    """The experiments of one paper.

    One that ``extends`` another takes over what that defines (:mod:`fedbench.plan.extend`); ``defined`` is what its own
    file adds or changes. ``measures`` adds metrics to :mod:`fedbench.measures`. ``scales`` says here what a file under
    ``config/scales`` could say about it.
    """

    key: Name
    extends: str | None = None
    title: str
    citation: str
    defaults: dict[str, Any] = {}
    datasets: dict[Name, DatasetEntry]
    methods: dict[Name, MethodEntry]
    settings: dict[Name, SettingEntry] = {}
    measures: Measures = {}
    tables: dict[Name, TableSpec] = {}
    figures: dict[Name, FigureSpec] = {}
    claims: list[ClaimSpec] = []
    tune: TuneSpec | None = None
    scales: dict[str, ScalePaper] = {}
    defined: dict[str, list[str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _everybody(cls, data: Any) -> Any:
        """Enter all methods in leaderboards and Pareto figures that name none."""
        if not isinstance(data, Mapping) or not isinstance(data.get("methods"), Mapping):
            return data
        return {
            **data,
            **{kind: _entered(data.get(kind), [*data["methods"]]) for kind in ("tables", "figures")},
        }

    @property
    def controls(self) -> list[str]:
        """The methods that leaderboards show without a rank."""
        boards = [table.board for table in self.tables.values() if table.board is not None]
        return list(dict.fromkeys(name for board in boards for name in board.controls))

    def measure(self, metric: str) -> Measure:
        """Return what is known of a metric: by this paper's own ``measures``, else by the table of all.

        Raises:
            UserError: nobody measures it.
        """
        return measures.measure(metric, self.measures)

    def defines(self, dataset: str, method: str) -> bool:
        """Say whether this paper's own file, and not the one it extends, has the word on a dataset or a method."""
        return dataset in self.defined.get("datasets", []) or method in self.defined.get("methods", [])


class Scale(Spec):
    """How much is computed: never what."""

    name: Name
    description: str
    seeds: Seeds
    constants: Constants = "tuned"
    papers: dict[str, ScalePaper]
