"""How a run trains: its length, its rounds and batches, its participants, its step sizes."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from fedbench.spec.base import Spec

LONGEST = 1_000_000_000
"""The most iterations, rounds or passes of a run. More would be years of training, so a larger number is a typing
mistake."""
MOST_EVALUATIONS = 100_000
"""The most points of a curve. A run with fewer rounds than `evaluations` is evaluated after every round."""


class ParticipationSpec(Spec):
    """Which clients take part in a round."""

    added_later: ClassVar[tuple[str, ...]] = ("groups",)

    rule: Literal["full", "random", "cyclic"] = "full"
    """`full`: all clients. `random`: a number `clients` of them, drawn without replacement. `cyclic`: a number
    `clients` from the group whose turn it is."""
    clients: int | None = Field(None, ge=1)
    """With `random` and `cyclic`: the number of clients in a round."""
    groups: int | None = Field(None, ge=1)
    """With `cyclic`: before training, the clients are dealt to this many groups; a cycle is one round of each group.
    With `random`: the number of rounds of a cycle; it does not change who takes part."""

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
        """Raise ValueError if ``n_clients`` are too few for the groups, or a group too small for its draw."""
        groups = 1 if self.rule != "cyclic" or self.groups is None else self.groups
        if groups > n_clients:
            raise ValueError(f"participation.groups is {groups}, but there are only {n_clients} clients")
        smallest = n_clients // groups
        if self.clients is not None and self.clients > smallest:
            what = f"the smallest of {groups} groups has" if groups > 1 else "there are"
            raise ValueError(f"participation.clients is {self.clients}, but {what} only {smallest} clients")


class NormalizeSpec(Spec):
    """Normalisation of inputs in [0, 1]: each channel's mean is subtracted, then its standard deviation divides."""

    mean: tuple[FiniteFloat, ...] = Field(min_length=1)
    """Mean of each channel, of inputs in [0, 1]."""
    std: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]
    """Standard deviation of each channel. With three channels, a grey image becomes an image of three channels."""

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")
        return self


class NoiseSpec(Spec):
    """Gaussian noise that training adds to normalised inputs, with another mean for each client."""

    std: float = Field(0.0, ge=0, lt=float("inf"))
    """Standard deviation of the noise."""
    shift: FiniteFloat = 0.0
    """The mean of client k's noise is `shift` times (k - `centre`), with clients counted from 0. FeDXL's script for
    ChestMNIST has std 0.2 (0.01 unless given), shift 0.01 and centre 8 on 16 machines (a3b2f29, FeDXL/README 26-28,
    FeDXL/main.py 129, arguments.py 40)."""
    centre: int = Field(0, ge=0)
    """The client whose noise has mean 0."""


class StagesSpec(Spec):
    """Stages of training, each `scale` times as long as the stage before; step sizes fall after each stage.

    The program of CODA has a scale of 3 and a factor of 1/3 (ZhishuaiGuo/DistributedAUC 30f052a, imagenet/main.py
    202-203).
    """

    first: int = Field(ge=1)
    """Length of the first stage in cycles, or in rounds where there are no cycles."""
    scale: float = Field(1.0, ge=1)
    """A stage is this many times as long as the stage before."""
    factor: float = Field(gt=0, le=1)
    """Step sizes are multiplied by this after each stage."""


class TrainSpec(Spec):
    """The length of training, its rounds and batches, its participants and its step-size schedule."""

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
    """Passes over the client's data in a round, for clients of unequal size."""
    batch_size: int | None = Field(None, ge=1)
    """Samples of a mini-batch. Give either `batch_size` or `batches_per_epoch`."""
    batches_per_epoch: int | None = Field(None, ge=1)
    """Mini-batches of a pass; the batch size follows from the client's number of samples."""
    positives: Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)] | None = None
    """Stratified batches: each mini-batch holds a fixed number of positives, and the rest are negatives. A whole number
    is the number of positives; a sample then weighs in proportion to its class in the client's data, so that the mean
    of a batch is unbiased. A share below 1 is multiplied by `batch_size` and rounded down; all samples then weigh the
    same, and min-max losses take the share of positives in batches for their prior. LibAUC's DualSampler and loss do so
    (812f98f, libauc/sampler/sampler.py 217-246, libauc/losses/auc.py 257-258): if a client has few positives, some of
    them occur several times in an epoch."""
    prior: Literal["client", "pooled"] = "pooled"
    """The share of positives in min-max losses. `client`: the mean of the clients' shares. `pooled`: the share among
    all samples together. If clients differ, only with `client` is the mean of their losses the square loss of the AUC.
    Default in a YAML: `pooled` with the partition rule `even` and with more than two classes, else `client`."""
    weights: Literal["equal", "samples"] = "equal"
    """The weights of clients in every average: `equal`, or in proportion to their training `samples`, as in the paper
    of FedAvg. With `samples`, the prior of min-max losses is the share of positives among all samples. Methods that
    weigh clients themselves refuse `samples`."""
    reference: Literal["local", "pooled"] | None = None
    """Training without federation, with the same number of steps. `local`: each client trains its own model on its own
    data. `pooled`: one client trains on all data, with batches as large as the batches of a round's participants
    together, so that it sees as many samples. `references` of a table or figure adds such runs to it."""
    participation: ParticipationSpec = ParticipationSpec()
    """Which clients take part in a round."""
    decay_at: tuple[float, ...] = ()
    """The fractions of training, in (0, 1), after which step sizes fall; where clients take turns, rounded to the end
    of a cycle."""
    decay_factor: float = Field(0.1, gt=0, le=1)
    """With `decay_at`: the factor of the step sizes."""
    stage_every: int | None = Field(None, ge=1)
    """Step sizes fall each time this many iterations are over; where clients take turns, at the end of that cycle."""
    stage_factor: float | None = Field(None, gt=0, le=1)
    """With `stage_every`: the factor of the step sizes."""
    stages: StagesSpec | None = None
    """Stages of growing length, after each of which step sizes fall."""
    weight_decay: float = Field(0.0, ge=0)
    """This multiple of the parameters is added to each gradient."""
    clip_norm: float | None = Field(None, gt=0)
    """The largest Euclidean norm of a client's gradient; a longer gradient is scaled down."""
    clip_value: float | None = Field(None, gt=0)
    """The largest absolute value of a gradient's entries; larger entries are cut off. The programs of
    CODASCA (ICML2021_FedDeepAUC_CODASCA 050b00c, main_codasca_cifar.py 125, 391) and LibAUC (812f98f,
    libauc/optimizers/pesg.py 66, 274) have 1."""
    augment: Literal["none", "crop_flip", "crop_flips", "pad_crop_flip", "affine"] = "none"
    """Random changes of training images. `crop_flip`: crop by 2 pixels, flip left-right, resize back. `crop_flips`: the
    same, also flipped top-bottom, as on ChestMNIST in FeDXL (a3b2f29, FeDXL/main.py 120-126). `pad_crop_flip`: pad by 4
    pixels of zeros, crop to the old size, flip left-right. `affine`: turn by up to 15 degrees, shift and scale by up to
    5 %."""
    noise: NoiseSpec | None = None
    """Gaussian noise that is added to training inputs after normalisation."""
    normalize: NormalizeSpec | None = None
    """Mean and standard deviation for the normalisation of inputs."""
    minority_classes: tuple[int, ...] = ()
    """The classes of the metric `minority_accuracy`."""
    evaluations: int = Field(20, ge=1, le=MOST_EVALUATIONS)
    """The number of evaluations, evenly spaced over training: the points of a curve."""
    select: str | None = Field(None, pattern=r"^val_.")
    """The validation metric that chooses the reported evaluation. Default: the last evaluation is reported."""
    keep_model: bool = False
    """Store the final model, for runs that start from it."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Precision of matrix products and convolutions. `tf32` rounds their factors to 10 bits on a GPU. `bf16` computes
    training passes in bfloat16 (8 bits) and evaluations in float32. Parameters and updates are always float32."""

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
        """Whether ``positives`` is a share: batches hold that share of positives, and all samples weigh the same."""
        return isinstance(self.positives, float)

    @property
    def positives_of_batch(self) -> int:
        """The number of positives in a batch of ``batch_size``, at least 1; 0 if batches are not stratified."""
        if not isinstance(self.positives, float):
            return self.positives or 0
        return max(1, math.floor(self.positives * (self.batch_size or 0) + 1e-9))

    @property
    def known_rounds(self) -> int | None:
        """The number of rounds; None if it depends on the clients' number of samples (``epochs``)."""
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
