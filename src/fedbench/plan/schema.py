"""What configuration files may say: the user's own, the papers' experiments and the scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fedbench import measures
from fedbench.measures import Measure
from fedbench.plan.claims import ClaimSpec, Value
from fedbench.plan.entries import PIECES, DatasetEntry, MethodEntry, SettingEntry
from fedbench.plan.figures import COURSE, FigureSpec
from fedbench.plan.tables import BoardSpec, TableSpec
from fedbench.plan.tuning import Seeds, TuneSpec
from fedbench.specs import Name, Spec

__all__ = [
    "COURSE", "PIECES", "BoardSpec", "Config", "Constants", "DatasetEntry", "FigureSpec", "MethodEntry", "Paper",
    "Scale", "ScalePaper", "SettingEntry", "TableSpec", "TuneSpec", "Value",
]  # fmt: skip


def _folder(path: str) -> str:
    if set(path) & {"{", "}"} or not path.isprintable():
        raise ValueError(
            "braces and control characters in the name of this folder mean something to Snakemake"
        )
    return path


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
    tolerance: float = Field(0.01, ge=0, allow_inf_nan=False)
    shipped: bool = True
    constants: Constants | None = None
    set: dict[str, Any] = {}


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

    def values(self, shown: TableSpec | FigureSpec) -> dict[str, list[Value]]:
        """Return the values that each setting takes in a table or figure: those it names, else the default."""
        return {name: [*shown.settings.get(name, [entry.default])] for name, entry in self.settings.items()}

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
