"""The description of one run, with everything that changes its numbers, and its key."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from fedbench.spec.base import Name, Spec, canonical_json, digest_of, mapping_of
from fedbench.spec.data import NUMERICS, DataSpec
from fedbench.spec.train import TrainSpec


class NetworkSpec(Spec):
    """A network of ``fedbench.models``, with its options and the rule of its initial weights."""

    added_later: ClassVar[tuple[str, ...]] = ("weights",)

    name: Name
    """Name of a network: a file in `src/fedbench/models`, or an entry point."""
    options: dict[str, Any] = {}
    """Arguments of the network's `build` function."""
    weights: Literal["pytorch", "xavier"] = "pytorch"
    """Initial weights of linear and convolution layers. `pytorch`: PyTorch's defaults. `xavier`: weights are normal
    after Glorot, and each bias is 1 divided by the number of biases of its layer, so 1 for a single output (fcsg's
    program, 353356a, Invariant Logistic Regression/dataset.py 78-82, and D-AUPRC, 3f96df4, utils.py 49-56 and
    77-84)."""


class TaskSpec(Spec):
    """The learning task: its batches, loss and metrics; a file in ``fedbench.tasks``, with its options."""

    name: Name
    """Name of a task: a file in `src/fedbench/tasks`, or an entry point."""
    options: dict[str, Any] = {}
    """The task's options, named like the fields of its class."""


class StartSpec(Spec):
    """Where training starts, if not from random weights: the final model of ``run``, or a file of ``weights``."""

    run: RunSpec | None = None
    """The run from whose final model training starts; a study names this run as a `cell`."""
    weights: str | None = Field(None, exclude=True)
    """A file that `torch.save(module.state_dict(), path)` wrote."""
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """Checksum of the file of `weights`. The checksum enters the key of the run; the path does not."""
    drop_head: bool = False
    """Take the weights of all layers except the output layer, which starts at random."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.run is None) == (self.sha256 is None):
            raise ValueError("give either run, or weights with sha256, the file's checksum (sha256sum FILE)")
        if self.run is not None and self.weights is not None:
            raise ValueError("give either run or weights, not both")
        if self.run is not None and not self.run.train.keep_model:
            raise ValueError("the run to start from keeps no model: give it train.keep_model: true")
        return self


LATE_PARAMS: dict[str, Any] = {
    "a_b": "free", "alpha_least": None, "alpha_start": 0, "ascent": "each_step", "dual_losses": "clean",
    "halves": "as_algorithm", "stage_start": "last",
}  # fmt: skip
"""Hyper-parameters that were added after runs had been stored, with their defaults. A run leaves out a hyper-parameter
that equals its default, so that the keys of older runs do not change."""
SHARED = ("data", "network", "task", "train", "start")
"""The parts that many runs share: the canonical JSON of each part is made once."""


class RunSpec(Spec):
    """One run: one method on one setting with one seed. Equal keys mean equal numbers, wherever a run was made."""

    added_later: ClassVar[tuple[str, ...]] = ("task", "start")

    data: DataSpec
    """The data: dataset, labels, imbalance and clients."""
    network: NetworkSpec
    """The network."""
    task: TaskSpec | None = None
    """The learning task. Default: classification."""
    method: Name
    """Name of a method: a file in `src/fedbench/algorithms`, or an entry point."""
    params: dict[str, Any]
    """The method's hyper-parameters: all that have no default, and those that differ from their default."""
    train: TrainSpec
    """How long and how it trains."""
    start: StartSpec | None = None
    """Where training starts. Default: random weights."""
    seed: int = Field(ge=0)
    """Filled in by fedbench: the seed of everything random, one of `seeds`."""
    numerics: int = NUMERICS
    """Filled in by fedbench: the version of the numerics. A change of code that changes results raises the version,
    and with it all keys change."""

    @field_validator("params")
    @classmethod
    def _without_late_params(cls, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in params.items() if LATE_PARAMS.get(name, LATE_PARAMS) != value}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.train.participation.check(self.data.clients)
        if self.train.select is not None and not self.data.held_out:
            raise ValueError("train.select chooses by validation, but data.validation holds nothing out")
        return self

    @functools.cached_property
    def key(self) -> str:
        """The 16 hex digits that name this run in the store."""
        shared = {name: part.canonical for name in SHARED if (part := getattr(self, name)) is not None}
        unshared = self.model_dump(mode="json", exclude={*shared})
        return digest_of(
            mapping_of(shared | {name: canonical_json(value) for name, value in unshared.items()})
        )

    def seeded(self, seed: int) -> RunSpec:
        """Return this run with another seed; the run from whose model it starts gets the same seed."""
        start = self.start
        if start is not None and start.run is not None:
            start = start.model_copy(update={"run": start.run.seeded(seed)})
        return self.model_copy(update={"seed": seed, "start": start})


StartSpec.model_rebuild()
RunSpec.model_rebuild()
