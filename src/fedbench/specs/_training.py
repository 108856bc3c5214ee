"""How a run trains: how long, in what portions, who takes part, with which steps."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from fedbench.specs._base import Spec

LONGEST = 1_000_000_000
"""The most iterations, rounds or passes of a run: more is a slip of the pen, and years of training."""
MOST_EVALUATIONS = 100_000
"""The most points of a curve. A run that has fewer rounds is evaluated after each of them."""


class ParticipationSpec(Spec):
    """Who takes part in a round.

    ``full``: everybody. ``random``: ``clients`` of all, drawn without replacement. ``cyclic``: ``clients`` of the group
    whose turn it is; the clients are dealt to ``groups`` fixed groups once. A cycle is ``groups`` rounds; under
    ``random`` it has no other meaning than this length.
    """

    late: ClassVar[tuple[str, ...]] = ("groups",)

    rule: Literal["full", "random", "cyclic"] = "full"
    clients: int | None = Field(None, ge=1)
    groups: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule == "full" and self.clients is not None:
            raise ValueError("participation: rule 'full' takes none of clients: everybody takes part")
        if self.rule != "full" and self.clients is None:
            raise ValueError(f"participation: rule {self.rule!r} needs clients (how many a round)")
        if self.rule == "cyclic" and self.groups is None:
            raise ValueError("participation: rule 'cyclic' needs groups (how many take turns)")
        if self.rule == "full" and self.groups is not None:
            raise ValueError("participation: rule 'full' has no groups: everybody takes part in every round")
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
    """Per-channel mean and standard deviation subtracted from and divided into inputs in [0, 1].

    Grey images that are normalised with three of each become images of three channels.
    """

    mean: tuple[FiniteFloat, ...] = Field(min_length=1)
    std: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.mean) != len(self.std) or not self.mean or min(self.std) <= 0:
            raise ValueError("mean and std have one number for each channel, those of std above 0")
        return self


class StagesSpec(Spec):
    """Stages that grow: the first is ``first`` cycles long (rounds, where there are no cycles), each later one
    ``scale`` times the one before; at each change step sizes are multiplied by ``factor``.
    """

    first: int = Field(ge=1)
    scale: float = Field(1.0, ge=1)
    factor: float = Field(gt=0, le=1)


class TrainSpec(Spec):
    """How long, in what portions and with which step schedule a run trains.

    ``iterations`` counts local steps of one client, ``epochs`` passes over its data, ``rounds`` communications,
    ``cycles`` turns of all groups: exactly one is given. A round is ``period`` steps, or ``local_epochs`` passes for
    clients of unequal size.

    Step sizes fall at ``decay_at`` (fractions of the run, by ``decay_factor``), or every ``stage_every`` iterations (by
    ``stage_factor``), or as ``stages`` says. ``positives`` of each mini-batch are of class 1, the rest of class 0, each
    drawn from its own. ``select`` names the validation metric by which the reported evaluation is chosen; without it
    that is the last. ``keep_model`` stores the final model, for runs that start from it. ``clip_norm`` bounds the norm
    of a gradient, ``clip_value`` its entries.
    """

    late: ClassVar[tuple[str, ...]] = (
        "cycles", "stage_every", "stage_factor", "stages", "positives", "select", "keep_model", "clip_value",
    )  # fmt: skip

    iterations: int | None = Field(None, ge=1, le=LONGEST)
    epochs: float | None = Field(None, gt=0, le=LONGEST)
    rounds: int | None = Field(None, ge=1, le=LONGEST)
    cycles: int | None = Field(None, ge=1, le=LONGEST)
    period: int | None = Field(None, ge=1)
    local_epochs: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)
    batches_per_epoch: int | None = Field(None, ge=1)
    positives: int | None = Field(None, ge=1)
    participation: ParticipationSpec = ParticipationSpec()
    decay_at: tuple[float, ...] = ()
    decay_factor: float = Field(0.1, gt=0, le=1)
    stage_every: int | None = Field(None, ge=1)
    stage_factor: float | None = Field(None, gt=0, le=1)
    stages: StagesSpec | None = None
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(None, gt=0)
    clip_value: float | None = Field(None, gt=0)
    augment: Literal["none", "crop_flip", "pad_crop_flip", "affine"] = "none"
    normalize: NormalizeSpec | None = None
    minority_classes: tuple[int, ...] = ()
    evaluations: int = Field(20, ge=1, le=MOST_EVALUATIONS)
    select: str | None = Field(None, pattern=r"^val_.")
    keep_model: bool = False

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
        if self.positives is not None and (self.batch_size is None or self.positives >= self.batch_size):
            raise ValueError("positives needs batch_size, and must be smaller: the rest are negatives")
        self._check_stages()
        return self

    @property
    def known_rounds(self) -> int | None:
        """How many rounds the run has; None where the clients' data decide (``epochs``)."""
        if self.cycles is not None:
            return self.cycles * (self.participation.groups or 1)
        if self.iterations is not None and self.period is not None:
            return math.ceil(self.iterations / self.period)
        return self.rounds

    def _check_stages(self) -> None:
        if any(not 0 < at < 1 for at in self.decay_at) or list(self.decay_at) != sorted(self.decay_at):
            raise ValueError("decay_at holds ascending fractions of the run, each in (0, 1)")
        if (self.stage_every is None) != (self.stage_factor is None):
            raise ValueError("stage_every and stage_factor go together")
        if self.stage_every is not None and self.period is None:
            raise ValueError("stage_every counts iterations: it goes with period, not with local_epochs")
        if sum(map(bool, (self.decay_at, self.stage_every, self.stages))) > 1:
            raise ValueError("give at most one of decay_at, stage_every, stages")
