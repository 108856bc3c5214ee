"""How a run trains: how long, in what portions, who takes part, with which steps."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from fedbench.spec.base import Spec

LONGEST = 1_000_000_000
"""The most iterations, rounds or passes of a run: more is a slip of the pen, and years of training."""
MOST_EVALUATIONS = 100_000
"""The most points of a curve. A run that has fewer rounds is evaluated after each of them."""


class ParticipationSpec(Spec):
    """Who takes part in a round."""

    added_later: ClassVar[tuple[str, ...]] = ("groups",)

    rule: Literal["full", "random", "cyclic"] = "full"
    """Who takes part in a round. `full`: all clients. `random`: `clients` of all, drawn without replacement.
    `cyclic`: `clients` of the group whose turn it is."""
    clients: int | None = Field(None, ge=1)
    """Number of clients in a round, with `random` and `cyclic`."""
    groups: int | None = Field(None, ge=1)
    """With `cyclic`: the clients are dealt to this many fixed groups once; a cycle is one round of each group.
    With `random` it only says how many rounds a cycle has."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule == "full" and self.clients is not None:
            raise ValueError("participation: rule 'full' takes none of clients: all clients take part")
        if self.rule != "full" and self.clients is None:
            raise ValueError(f"participation: rule {self.rule!r} needs clients (how many a round)")
        if self.rule == "cyclic" and self.groups is None:
            raise ValueError("participation: rule 'cyclic' needs groups (how many take turns)")
        if self.rule == "full" and self.groups is not None:
            raise ValueError("participation: rule 'full' has no groups: all clients take part in every round")
        return self

    def check(self, n_clients: int) -> None:
        """Raise ValueError unless ``n_clients`` clients are enough for the groups, and a group for its draw."""
        groups = 1 if self.rule != "cyclic" or self.groups is None else self.groups
        if groups > n_clients:
            raise ValueError(f"participation.groups is {groups}, but there are only {n_clients} clients")
        smallest = n_clients // groups
        if self.clients is not None and self.clients > smallest:
            what = f"the smallest of {groups} groups has" if groups > 1 else "there are"
            raise ValueError(f"participation.clients is {self.clients}, but {what} only {smallest} clients")


class NormalizeSpec(Spec):
    """Mean and standard deviation of each channel, by which inputs in [0, 1] are normalised."""

    mean: tuple[FiniteFloat, ...] = Field(min_length=1)
    """Mean of each channel, of inputs in [0, 1]."""
    std: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]
    """Standard deviation of each channel. A grey image with three of them becomes an image of three channels.
    """

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")
        return self


class NoiseSpec(Spec):
    """Gaussian noise that training adds to normalised inputs, with a mean of its own for each client."""

    std: float = Field(0.0, ge=0, lt=float("inf"))
    """Standard deviation of the noise."""
    shift: FiniteFloat = 0.0
    """The mean of client k's noise is this times k - `centre`, clients counted from 0. FeDXL's program, on which cycp
    builds, has std 0.01, shift 0.01 and centre 8 on 16 machines (a3b2f29, FeDXL/main.py 129, arguments.py 40)."""
    centre: int = Field(0, ge=0)
    """The client whose noise has mean 0."""


class StagesSpec(Spec):
    """Stages of training that grow; step sizes fall after each."""

    first: int = Field(ge=1)
    """Length of the first stage in cycles, or in rounds where there are no cycles."""
    scale: float = Field(1.0, ge=1)
    """Each later stage is this many times as long as the one before."""
    factor: float = Field(gt=0, le=1)
    """Step sizes are multiplied by this after each stage."""


class TrainSpec(Spec):
    """How long, in what portions and with which step schedule a run trains."""

    added_later: ClassVar[tuple[str, ...]] = (
        "cycles", "stage_every", "stage_factor", "stages", "positives", "prior", "select", "keep_model",
        "clip_value", "precision", "noise", "weights", "reference",
    )  # fmt: skip

    iterations: int | None = Field(None, ge=1, le=LONGEST)
    """Length of training in local steps of one client. Give exactly one of `iterations`, `epochs`, `rounds`,
    `cycles`."""
    epochs: float | None = Field(None, gt=0, le=LONGEST)
    """Length of training in passes over a client's data."""
    rounds: int | None = Field(None, ge=1, le=LONGEST)
    """Length of training in communication rounds."""
    cycles: int | None = Field(None, ge=1, le=LONGEST)
    """Length of training in cycles: `participation.groups` rounds each."""
    period: int | None = Field(None, ge=1)
    """Local steps of a round. Give either `period` or `local_epochs`."""
    local_epochs: int | None = Field(None, ge=1)
    """Passes of a round over the client's data, for clients of unequal size."""
    batch_size: int | None = Field(None, ge=1)
    """Samples of a mini-batch. Give either `batch_size` or `batches_per_epoch`."""
    batches_per_epoch: int | None = Field(None, ge=1)
    """Mini-batches of a pass; the batch size follows from the client's number of samples."""
    positives: Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)] | None = None
    """Positives in each mini-batch; the rest are negatives, each drawn from its own class. A whole number: how many,
    and a sample weighs as much as its class does in the client's data, so that the mean of a batch is unbiased. A share
    below 1: of `batch_size`, rounded down; all samples weigh the same, and `prior` is the share in batches. So does
    the DualSampler of LibAUC (sampler/sampler.py); a client with few positives gives some of them several times."""
    prior: Literal["client", "pooled"] = "pooled"
    """Share of positives in min-max losses: the mean of the clients' own, or that of all samples together. Where
    clients differ, only the first makes the mean of their losses the square loss of the AUC. Default in a YAML:
    `pooled` with the partition rule `even` and with more than two classes, else `client`."""
    weights: Literal["equal", "samples"] = "equal"
    """How clients weigh in every average: all alike, or by their training samples, as FedAvg's paper has it. `prior` is
    then the clients' mean with the same weights, the share of all samples. Methods that weigh clients themselves refuse
    `samples`."""
    reference: Literal["local", "pooled"] | None = None
    """Trained without federation, in as many steps. `local`: each client alone on its own data, a model each. `pooled`:
    all data on one client, whose batches are as large as those of a round's clients together, so that as many samples
    are seen. A table or figure with `references` has such runs beside its own."""
    participation: ParticipationSpec = ParticipationSpec()
    """Who takes part in a round."""
    decay_at: tuple[float, ...] = ()
    """Step sizes fall at these fractions of training, in (0, 1); where clients take turns, between cycles."""
    decay_factor: float = Field(0.1, gt=0, le=1)
    """With `decay_at`: step sizes are multiplied by this."""
    stage_every: int | None = Field(None, ge=1)
    """Step sizes fall every this many iterations; where clients take turns, at the end of the cycle."""
    stage_factor: float | None = Field(None, gt=0, le=1)
    """With `stage_every`: step sizes are multiplied by this."""
    stages: StagesSpec | None = None
    """Step sizes fall at the ends of stages that grow."""
    weight_decay: float = Field(0.0, ge=0)
    """This multiple of the parameters is added to each gradient."""
    clip_norm: float | None = Field(None, gt=0)
    """The largest norm of a gradient."""
    clip_value: float | None = Field(None, gt=0)
    """The largest absolute value of a gradient's entries."""
    augment: Literal["none", "crop_flip", "crop_flips", "pad_crop_flip", "affine"] = "none"
    """Random changes of training images."""
    noise: NoiseSpec | None = None
    """Gaussian noise that is added to training inputs after they are normalised."""
    normalize: NormalizeSpec | None = None
    """Mean and standard deviation by which inputs are normalised."""
    minority_classes: tuple[int, ...] = ()
    """The classes of the metric `minority_accuracy`."""
    evaluations: int = Field(20, ge=1, le=MOST_EVALUATIONS)
    """Number of evaluations, evenly spaced; the curve has so many points."""
    select: str | None = Field(None, pattern=r"^val_.")
    """The validation metric that chooses the reported evaluation. Default: the last evaluation is reported.
    """
    keep_model: bool = False
    """Store the final model, for runs that start from it."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Precision of matrix products and convolutions. `tf32` rounds their factors to 10 bits on a GPU. `bf16` computes
    training passes in bfloat16 (8 bits), and evaluations in float32. Parameters and updates are always float32."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        def one_of(*names: str) -> None:
            if sum(getattr(self, name) is not None for name in names) != 1:
                raise ValueError(f"give exactly one of {', '.join(names)}")

        one_of("iterations", "epochs", "rounds", "cycles")
        one_of("period", "local_epochs")
        one_of("batch_size", "batches_per_epoch")
        if self.local_epochs is not None and self.rounds is None and self.cycles is None:
            raise ValueError("local_epochs goes with rounds or cycles")
        if self.cycles is not None and self.participation.groups is None:
            raise ValueError(
                "cycles need participation.groups, the rounds of a cycle (rule 'random' or 'cyclic')"
            )
        if self.positives is not None and self.positives_of_batch >= (self.batch_size or 0):
            raise ValueError("positives needs batch_size, and must be smaller: the rest are negatives")
        self._check_stages()
        self._check_reference()
        return self

    @property
    def oversamples(self) -> bool:
        """Whether batches hold another share of positives than the data, and all of their samples weigh the same."""
        return isinstance(self.positives, float)

    @property
    def positives_of_batch(self) -> int:
        """How many positives a batch of ``batch_size`` holds, at least one; 0 where they come as they fall."""
        if not isinstance(self.positives, float):
            return self.positives or 0
        return max(1, math.floor(self.positives * (self.batch_size or 0) + 1e-9))

    @property
    def known_rounds(self) -> int | None:
        """How many rounds the run has; None where the clients' data decide (``epochs``)."""
        if self.cycles is not None:
            return self.cycles * (self.participation.groups or 1)
        if self.iterations is not None and self.period is not None:
            return math.ceil(self.iterations / self.period)
        return self.rounds

    def _check_reference(self) -> None:
        if self.reference is not None and self.noise is not None:
            raise ValueError(f"reference {self.reference}: noise has a mean of its own for each client")
        if self.reference == "local" and self.keep_model:
            raise ValueError("reference local: each client has a model of its own, and keep_model stores one")
        if self.reference == "pooled" and self.local_epochs and self.participation.rule != "full":
            raise ValueError(
                "reference pooled: local_epochs of a part of the clients are no passes over all data"
            )

    def _check_stages(self) -> None:
        if any(not 0 < at < 1 for at in self.decay_at) or list(self.decay_at) != sorted(self.decay_at):
            raise ValueError("decay_at holds ascending fractions of the run, each in (0, 1)")
        if (self.stage_every is None) != (self.stage_factor is None):
            raise ValueError("stage_every and stage_factor go together")
        if self.stage_every is not None and self.period is None:
            raise ValueError("stage_every counts iterations: it goes with period, not with local_epochs")
        if sum(map(bool, (self.decay_at, self.stage_every, self.stages))) > 1:
            raise ValueError("give at most one of decay_at, stage_every, stages")
