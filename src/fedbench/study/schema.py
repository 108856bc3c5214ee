"""What configuration files may say: the user's own, the papers' experiments and the scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fedbench import metric_table
from fedbench.metric_table import Measure
from fedbench.spec import Name, Spec
from fedbench.study.claims import ClaimSpec, Value
from fedbench.study.entries import (
    INSIDE,
    PIECES,
    DatasetEntry,
    MethodEntry,
    RunPiece,
    SettingEntry,
    TrainPiece,
)
from fedbench.study.figures import COURSE, FigureSpec
from fedbench.study.tables import BoardSpec, TableSpec
from fedbench.study.tuning import Seeds, TuneSpec

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
    """The user's choices. Each key can also be given for one call: ``snakemake --config key=value``."""

    elsewhere: ClassVar[dict[str, str]] = dict.fromkeys(
        PIECES, "set, as in set: {train.iterations: 500}, or in a file of config/papers"
    )

    scale: str = "demo"
    """How much is computed: `demo` (minutes), `reduced` (about an hour for a row of a table) or `paper` (the
    published protocol), or a file of your own in `config/scales`."""
    paper: str = "localscgdam"
    """The paper whose tables are also copied to `tables/` and `figures/`."""
    seeds: Seeds | None = None
    """Seeds of the runs, for example `[0, 1, 2]`. Default: the seeds of the scale."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where training runs; `auto` takes a GPU if there is one."""
    client_chunk: int | None = Field(None, ge=1)
    """Number of clients that are computed together. Default: chosen automatically. The number changes speed; it changes
    results only by rounding, which may let validation select another round."""
    compile: bool | Literal["graph"] = False
    """Compile the local steps before training. Compiling takes seconds for each form of a step and needs a C++
    compiler; MLPs then train faster. It changes results by rounding, as `client_chunk` does. `graph`, for a GPU: record
    the steps as CUDA graphs instead, which takes seconds and needs no compiler; convolutions then train two to six
    times as fast."""
    inputs: Literal["auto", "device", "host"] = "auto"
    """Where inputs are kept. `device`: each job copies them into its memory. `host`: batches are read from the prepared
    file, which all jobs of a machine share. `auto`: jobs copy inputs that fit. The choice changes no result."""
    keep_model: bool = False
    """Keep the trained weights of each run, with all that is needed to apply them, and the score of every test and
    validation sample. `fedbench predict` shows these scores and scores new samples. The choice changes no result."""
    checkpoint_seconds: float = Field(30.0, ge=0)
    """Seconds between checkpoints of an unfinished run; 0: after every round."""
    data_dir: Annotated[str, AfterValidator(_folder)] = "data"
    """Folder of raw files, prepared arrays and partitions."""
    mirror: str | None = None
    """A folder or an address that is asked for raw files before their official source."""
    datasets: list[str] | None = None
    """Names of datasets as in the paper. Default: the datasets of the scale."""
    tolerance: float = Field(0.01, ge=0, allow_inf_nan=False)
    """The largest difference between our number and the published one that counts as a match."""
    shipped: bool = True
    """Show the reference results that come with fedbench for cells that were not trained on this machine."""
    constants: Constants | None = None
    """Which hyper-parameters come first where both are known: published (`paper`) or `tuned` ones. Default: as the
    scale says."""
    set: dict[str, Any] = {}
    """Keys of a run and their values, for this call: `{train.iterations: 500}`."""


class ScalePaper(Spec):
    """The part of a paper that one scale runs, and how the scale shortens training."""

    datasets: list[str] | None = None
    """The datasets that run at this scale. Default: all of the paper."""
    stand_in: str | None = None
    """A small dataset that stands in for those of the paper."""
    settings: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    """The values of a setting that run at this scale. Default: all that a table names."""
    train: TrainPiece = {}
    """Changes to `train` at this scale, for all datasets."""
    per_dataset: dict[str, TrainPiece] = {}
    """Further changes to `train`, by dataset."""


def _entered(specs: Any, methods: list[str]) -> Any:
    if not isinstance(specs, Mapping):
        return specs or {}
    return {
        name: {**spec, "methods": spec.get("methods") or methods}
        if isinstance(spec, Mapping) and spec.get("kind") not in ("data", "facts")
        else spec
        for name, spec in specs.items()
    }


class Paper(Spec):
    """The experiments of one paper."""

    elsewhere: ClassVar[dict[str, str]] = dict.fromkeys(PIECES, "defaults") | {
        key: f"defaults.{part}" for key, part in INSIDE.items()
    }

    key: Name
    """Filled in by fedbench: the name of the file."""
    extends: str | None = None
    """Another paper, whose definitions this file takes over and changes: what is required need not be said again."""
    title: str
    """Title, for tables and reports."""
    citation: str
    """Citation, for tables and reports."""
    defaults: RunPiece = {}
    """The keys of a run that all cells share: `data`, `network`, `train`, `task`, `start`."""
    datasets: dict[Name, DatasetEntry]
    """Datasets by their label in tables."""
    methods: dict[Name, MethodEntry]
    """Methods by their label in tables."""
    proposes: list[str] = []
    """The methods that the paper proposes; tables count proposed methods and baselines separately."""
    settings: dict[Name, SettingEntry] = {}
    """The quantities that tables and figures vary, such as the number of clients."""
    measures: Measures = {}
    """Metrics of your own, beside those of fedbench."""
    tables: dict[Name, TableSpec] = {}
    """Tables by name."""
    figures: dict[Name, FigureSpec] = {}
    """Figures by name."""
    claims: list[ClaimSpec] = []
    """Sentences of the paper that are tested."""
    tune: TuneSpec | None = None
    """How hyper-parameters are chosen."""
    scales: dict[str, ScalePaper] = {}
    """The part of this paper that each scale runs, as under `papers` in `config/scales/NAME.yaml`."""
    defined: dict[str, list[str]] = {}
    """Filled in by fedbench: what this file adds to the paper that it extends."""

    @model_validator(mode="before")
    @classmethod
    def _everybody(cls, data: Any) -> Any:
        """Enter all methods in tables and figures that name none, but for those of data, which train nothing."""
        if not isinstance(data, Mapping) or not isinstance(data.get("methods"), Mapping):
            return data
        return {
            **data,
            **{kind: _entered(data.get(kind), [*data["methods"]]) for kind in ("tables", "figures")},
        }

    @property
    def targets(self) -> dict[str, TableSpec | FigureSpec]:
        """Its tables and figures by name."""
        return {**self.tables, **self.figures}

    def values(self, shown: TableSpec | FigureSpec) -> dict[str, list[Value]]:
        """Return the values that each setting takes in a table or figure: those it names, else the default."""
        return {name: [*shown.settings.get(name, [entry.default])] for name, entry in self.settings.items()}

    def measure(self, metric: str) -> Measure:
        """Return what is known of a metric: by this paper's own ``measures``, else by the table of all.

        Raises:
            UserError: nothing measures it.
        """
        return metric_table.measure(metric, self.measures)

    def contrary(self, metric: str) -> bool:
        """Say whether lower is better of a metric of its own: runs, which do not read this, take higher for better."""
        return metric_table.sign(metric, self.measures) != metric_table.sign(metric)

    def defines(self, dataset: str, method: str) -> bool:
        """Say whether this paper's own file, and not the one it extends, has the word on a dataset or a method."""
        return dataset in self.defined.get("datasets", []) or method in self.defined.get("methods", [])


class Scale(Spec):
    """A scale: how much of each paper is computed, with how many seeds and how long."""

    name: Name
    """Filled in by fedbench: the name of the file."""
    description: str
    """What the scale is for; the report page shows it."""
    seeds: Seeds
    """Seeds of the runs."""
    constants: Constants = "tuned"
    """Which hyper-parameters come first where both are known: published (`paper`) or `tuned` ones."""
    papers: dict[str, ScalePaper]
    """The part of each paper that the scale runs, by the name of the paper's file."""
