"""What a paper's file says of a dataset, a method and a setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema, model_validator

from fedbench.spec import DataSpec, Name, Spec, TrainSpec
from fedbench.study.claims import Value

PIECES = ("data", "network", "train", "task", "start")
"""The parts of a run specification that a dataset or a method can lay over a paper's defaults."""
INSIDE = {key: part for part, of in (("data", DataSpec), ("train", TrainSpec)) for key in of.model_fields}
"""The keys of ``data`` and ``train``, and under which of the two each stands."""


def _piece(of: str) -> WithJsonSchema:
    """Say in the JSON Schema that a dict is a part of a run specification, in which no key is required."""
    return WithJsonSchema({"type": "object", "piece": of})


RunPiece = Annotated[dict[str, Any], _piece("RunSpec")]
DataPiece = Annotated[dict[str, Any], _piece("DataSpec")]
NetworkPiece = Annotated[dict[str, Any], _piece("NetworkSpec")]
TrainPiece = Annotated[dict[str, Any], _piece("TrainSpec")]
TaskPiece = Annotated[dict[str, Any], _piece("TaskSpec")]
StartPiece = Annotated[dict[str, Any], _piece("StartSpec")]


class Entry(Spec):
    """What datasets and methods have in common."""

    elsewhere: ClassVar[dict[str, str]] = INSIDE

    label: str = ""
    """The name that tables and figures show, with any characters (`A & B`). Default: the key."""
    train: TrainPiece = {}
    """Changes to `train`."""
    task: TaskPiece | None = None
    """The learning task; `null`: classification."""
    start: StartPiece | None = None
    """Where training starts: from the final model of a `cell` of this paper, or from `weights` with `sha256`."""

    def piece(self) -> dict[str, Any]:
        """Return what is written here as a piece of a run specification; a written ``null`` takes away."""
        return {name: getattr(self, name) for name in PIECES if name in self.model_fields_set}


class DatasetEntry(Entry):
    """One dataset of a paper, under the label that its tables show."""

    printed: bool = True
    """Whether the paper publishes results on this dataset; `false` for a dataset that was added here."""
    note: str = ""
    """A note below tables that show it."""
    data: DataPiece
    """Changes to `data`: its `dataset`, labels, imbalance, partition."""
    network: NetworkPiece
    """The network."""
    fixed: RunPiece = {}
    """Keys of a run that override everything else, settings included."""


class TwinSpec(Spec):
    """A method that equals this one where this one's hyper-parameters have the values in ``when``."""

    of: str
    """The other method."""
    when: dict[str, Any] = {}
    """Values of hyper-parameters at which the two are the same method. Default: always."""


class MethodEntry(Entry):
    """One method of a paper, under the label that its tables show."""

    algorithm: Name
    """Name of the method: a file in `src/fedbench/algorithms`, or an entry point."""
    params: dict[str, Any] = {}
    """The hyper-parameters and their values."""
    grid: dict[str, list[Any]] = {}
    """The values that `fedbench tune` tries, by hyper-parameter or key of the run (`train.decay_at`). Names joined by a
    comma are varied together: `"lr, momentum": [[0.1, 0.9]]`."""
    published: list[str] = []
    """The hyper-parameters whose values are published, in the paper or in its program. With `constants: paper` these
    values override tuned ones."""
    only: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    """The method has cells only at these values of a setting, or on these datasets."""
    at: dict[str, dict[Value, RunPiece]] = {}
    """Changes to the run at certain values of a setting (or of `dataset`), by setting and value."""
    twin: TwinSpec | None = None
    """Another method that equals this one at certain hyper-parameters. Leaderboards then rank the two as one."""

    @model_validator(mode="after")
    def _params_are_given(self) -> MethodEntry:
        """Refuse a hyper-parameter that is named elsewhere and has no value."""
        for place, names in (
            ("published", self.published),
            ("twin.when", self.twin.when if self.twin else []),
        ):
            if lost := [name for name in names if name not in self.params]:
                raise ValueError(f"{place}: {lost[0]!r} is none of params")
        return self

    @model_validator(mode="after")
    def _grid_is_whole(self) -> MethodEntry:
        """Refuse joined names whose values are not joined alike, and a value that would count as two trials."""
        for names, values in self.grid.items():
            count = len(names.split(", "))
            if count > 1 and any(not isinstance(of, list) or len(of) != count for of in values):
                raise ValueError(f"grid: {names!r} takes lists of {count} values")
            if twice := [of for of in values if values.count(of) > 1]:
                raise ValueError(f"grid: {names}: {twice[0]} is listed twice; it would count as two trials")
        return self

    def has(self, place: Mapping[str, Value]) -> bool:
        """Say whether the method is run at a place: a dataset and a setting, or a part of them."""
        return all(place[name] in values for name, values in self.only.items() if name in place)


class SettingEntry(Spec):
    """A setting: a quantity that tables and figures vary, such as the number of clients."""

    sets: list[str]
    """The keys of a run that the setting sets, such as `data.clients`. `.` is the run itself: each value is then a
    piece of a run."""
    default: Value
    """The value for tables and figures that name none."""
    label: str
    """The setting's name in tables."""
    values: dict[Value, Any] = {}
    """For values that are only names: what each of them sets."""
    datasets: list[str] = []
    """The datasets that the setting changes. Default: all."""

    def holds(self, dataset: str) -> bool:
        """Say whether the setting sets something on a dataset."""
        return not self.datasets or dataset in self.datasets
