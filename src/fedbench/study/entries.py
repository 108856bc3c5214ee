"""What a paper's file says of a dataset, a method and a setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, model_validator

from fedbench.spec import Name, Spec
from fedbench.study.claims import Value

PIECES = ("data", "network", "train", "task", "start")
"""The parts of a run specification that a dataset or a method can lay over a paper's defaults."""


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

    label: str = ""
    """The name that tables and figures show, with any characters (`A & B`). Default: the key."""
    train: TrainPiece = {}
    """Changes to `train`."""
    task: TaskPiece | None = None
    """What is learned; `null`: classification."""
    start: StartPiece | None = None
    """Where training starts: `cell` (a cell of this paper, whose final model is taken), or `weights` and
    `sha256`."""

    def piece(self) -> dict[str, Any]:
        """Return what is written here as a piece of a run specification; a written ``null`` takes away."""
        return {name: getattr(self, name) for name in PIECES if name in self.model_fields_set}


class DatasetEntry(Entry):
    """One dataset of a paper, under the label that its tables show."""

    printed: bool = True
    """Whether the paper prints numbers for it; `false` for an addition of ours."""
    note: str = ""
    """A note below tables that show it."""
    data: DataPiece
    """Changes to `data`: its `dataset`, labels, imbalance, partition."""
    network: NetworkPiece
    """Its network."""
    fixed: RunPiece = {}
    """A piece of a run that wins over everything else, settings included."""


class TwinSpec(Spec):
    """A method is the method ``of`` if its hyper-parameters have the values in ``when``, which may be empty."""

    of: str
    """The other method."""
    when: dict[str, Any] = {}
    """Values of hyper-parameters at which the two are the same method. Default: always."""


class MethodEntry(Entry):
    """One method of a paper, under the label that its tables show."""

    algorithm: Name
    """Name of the method: a file in `src/fedbench/algorithms`, or an entry point."""
    params: dict[str, Any] = {}
    """Every hyper-parameter."""
    grid: dict[str, list[Any]] = {}
    """What `fedbench tune` tries: values of a hyper-parameter, or of a place of the run (`train.decay_at`).
    Names with commas are tried together: `"lr, momentum": [[0.1, 0.9]]`."""
    published: list[str] = []
    """Hyper-parameters whose value the paper or its program gives. With `constants: paper` they come before
    tuned values."""
    only: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    """The method has cells only at these values of a setting, or on these datasets."""
    at: dict[str, dict[Value, RunPiece]] = {}
    """Pieces of a run, by setting (or `dataset`) and value, that are laid over the run there."""
    twin: TwinSpec | None = None
    """A method that this one equals at some hyper-parameters. Leaderboards rank the two as one."""

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

    def has(self, place: Mapping[str, Value]) -> bool:
        """Say whether the method is run at a place: a dataset and a setting, or a part of them."""
        return all(place[name] in values for name, values in self.only.items() if name in place)


class SettingEntry(Spec):
    """One thing that a table varies."""

    sets: list[str]
    """The places of a run that it sets, such as `data.clients`. `.` is a piece of a run."""
    default: Value
    """The value where a table or a figure names none."""
    label: str
    """Its name in tables."""
    values: dict[Value, Any] = {}
    """What a value stands for, where it is not set as it is."""
    datasets: list[str] = []
    """The datasets it changes. Default: all."""

    def holds(self, dataset: str) -> bool:
        """Say whether the setting sets something on a dataset."""
        return not self.datasets or dataset in self.datasets
