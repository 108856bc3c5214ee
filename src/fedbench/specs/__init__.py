"""What a run is: the typed, validated description of everything that changes its numbers, and its key."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from fedbench.specs._base import Name, Spec, as_value, digest, named, validated
from fedbench.specs._data import NUMERICS, DataSpec, ImbalanceSpec, LabelSpec, PartitionSpec
from fedbench.specs._training import NormalizeSpec, ParticipationSpec, StagesSpec, TrainSpec

__all__ = [
    "NUMERICS",
    "DataSpec",
    "ImbalanceSpec",
    "LabelSpec",
    "Name",
    "NetworkSpec",
    "NormalizeSpec",
    "ParticipationSpec",
    "PartitionSpec",
    "RunSpec",
    "Spec",
    "StagesSpec",
    "StartSpec",
    "TaskSpec",
    "TrainSpec",
    "as_value",
    "digest",
    "named",
    "validated",
]  # fmt: skip


class NetworkSpec(Spec):
    """A network by the name of its file in ``fedbench.models``, with its options."""

    name: Name
    options: dict[str, Any] = {}


class TaskSpec(Spec):
    """What is learned, by the name of its file in ``fedbench.tasks``, with its options."""

    name: Name
    options: dict[str, Any] = {}


class StartSpec(Spec):
    """Where training starts, if not from random weights: the final model of ``run``, or a file of ``weights``.

    ``sha256`` is the file's checksum: it, and not the path, is part of the key. ``drop_head`` takes all but the output
    layer, which starts at random.
    """

    run: RunSpec | None = None
    weights: str | None = Field(None, exclude=True)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    drop_head: bool = False

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.run is None) == (self.sha256 is None):
            raise ValueError("give either run, or weights with sha256, the file's checksum (sha256sum FILE)")
        if self.run is not None and self.weights is not None:
            raise ValueError("give either run or weights, not both")
        if self.run is not None and not self.run.train.keep_model:
            raise ValueError("the run to start from keeps no model: give it train.keep_model: true")
        return self


class RunSpec(Spec):
    """One run, fully resolved. Two runs with the same key have the same numbers, wherever they were made."""

    late: ClassVar[tuple[str, ...]] = ("task", "start")

    data: DataSpec
    network: NetworkSpec
    task: TaskSpec | None = None
    method: Name
    params: dict[str, Any]
    train: TrainSpec
    start: StartSpec | None = None
    seed: int = Field(ge=0)
    numerics: int = NUMERICS

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.train.participation.check(self.data.clients)
        if self.train.select is not None and not self.data.held_out:
            raise ValueError("train.select chooses by validation, but data.validation holds nothing out")
        return self

    @functools.cached_property
    def key(self) -> str:
        """The 16 hex digits that name this run in the store."""
        return digest(self.model_dump(mode="json"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which has a key of its own."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("key", None)
        return copied

    def seeded(self, seed: int) -> RunSpec:
        """Return this run with another seed; a run it starts from gets the same one."""
        start = self.start
        if start is not None and start.run is not None:
            start = start.model_copy(update={"run": start.run.seeded(seed)})
        return self.model_copy(update={"seed": seed, "start": start})


StartSpec.model_rebuild()
RunSpec.model_rebuild()
