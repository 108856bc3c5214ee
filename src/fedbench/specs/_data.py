"""What a run trains on: dataset, labels, imbalance, clients, hold-out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedbench.specs._base import Name, Spec, digest

NUMERICS = 1
"""Version of the numerics. Raise it when a change of code changes results: every key changes with it."""


class LabelSpec(Spec):
    """How original classes become the labels that are trained on.

    ``halves`` takes the first or second half of the classes, ``random_halves`` a half drawn by the seed; ``named`` the
    classes that ``positive`` lists by number or name. ``flip`` is the share of the clients' positives that are called
    negative, as noise: validation and test part stay clean.
    """

    late: ClassVar[tuple[str, ...]] = ("positive", "flip")

    rule: Literal["original", "halves", "random_halves", "named"] = "original"
    positive_half: Literal["first", "second"] = "first"
    positive: tuple[int | str, ...] = ()
    flip: float = Field(0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rule == "named") != bool(self.positive):
            raise ValueError("rule 'named' and positive, the list of positive classes, go together")
        return self


class ImbalanceSpec(Spec):
    """Which training samples are dropped: positives to a ratio, a share of them, or minority classes to 1/rho.

    ``drop_positives_per_class`` keeps as many of each positive class.
    """

    late: ClassVar[tuple[str, ...]] = ("share",)

    rule: Literal["none", "drop_positives", "drop_positives_per_class", "minority", "remove_positives"] = (
        "none"
    )
    imratio: float | None = Field(None, gt=0, lt=1)
    rho: float | None = Field(None, ge=1)
    minority: tuple[int, ...] = ()
    share: float | None = Field(None, ge=0, lt=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule == "remove_positives" and self.share is None:
            raise ValueError(
                "rule 'remove_positives' needs share, the share of positives to remove, in [0, 1)"
            )
        if self.rule in ("drop_positives", "drop_positives_per_class") and self.imratio is None:
            raise ValueError(f"rule {self.rule!r} needs imratio, the share of positives to keep, in (0, 1)")
        if self.rule == "minority" and (self.rho is None or not self.minority):
            raise ValueError("rule 'minority' needs rho >= 1 and the list of minority classes")
        return self


class PartitionSpec(Spec):
    """How the training samples are dealt to clients; ``options`` are for rules that are not ours.

    ``by`` and ``least`` are for ``class_dirichlet``: whether original classes or the labels are dealt in shares, and
    how many samples a client has at least. ``paired`` is for ``silos``: positive and negative classes are dealt in the
    same shuffled order. ``remainder`` is for ``mix``: which samples are left out when they do not divide evenly.
    ``of`` is for all rules: the samples are dealt to so many clients, of whom the first ``data.clients`` are there;
    with one of them, a client trains alone.
    """

    late: ClassVar[tuple[str, ...]] = ("options", "by", "least", "paired", "remainder", "of")

    rule: Name = "even"
    alpha: float | None = Field(None, ge=0, le=1)
    delta: float | None = Field(None, gt=0)
    by: Literal["classes", "labels"] = "classes"
    least: int = Field(8, ge=1)
    paired: bool = False
    remainder: Literal["last", "random"] = "last"
    of: int | None = Field(None, ge=1, le=1_000_000)
    options: dict[str, Any] = {}


def _share_or_own(value: Any) -> Any:
    """Refuse in one message what is neither, where a union would give one for each of its parts."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value != "own" and not (number and 0 <= value < 1):
        raise ValueError(
            "give the share to hold out, from 0 to less than 1, or own for the dataset's own part"
        )
    return value


class DataSpec(Spec):
    """A dataset as one setting sees it: labels, imbalance, clients, and the share held out for validation.

    ``content`` is the digest of a dataset that a user's own file describes (None for those of the library): when the
    file or what it points at changes, so do the keys, and nothing stale is taken for a result. ``draw`` is the seed of
    all that is drawn here (what is dropped, held out and dealt) where it is not to follow the run's own seed.
    ``validation: own`` is the dataset's official validation part; a share is drawn from what the imbalance rule kept,
    or before it (``validation_of: all``).

    ``sources`` lists further datasets, of other sites, whose training parts are joined to that of ``dataset``; the test
    part is that of ``dataset``, or with ``tests: all`` of each of them.
    """

    late: ClassVar[tuple[str, ...]] = ("content", "draw", "validation_of", "sources", "tests")

    dataset: Name
    content: str | None = None
    labels: LabelSpec = LabelSpec()
    imbalance: ImbalanceSpec = ImbalanceSpec()
    partition: PartitionSpec = PartitionSpec()
    clients: int = Field(ge=1, le=1_000_000)
    validation: Annotated[float | Literal["own"], BeforeValidator(_share_or_own)] = 0.0
    validation_of: Literal["kept", "all"] = "kept"
    draw: int | None = Field(None, ge=0)
    sources: tuple[str, ...] = ()
    tests: Literal["own", "all"] = "own"

    @model_validator(mode="after")
    def _no_more_than_were_dealt_to(self) -> Self:
        if self.partition.of is not None and self.partition.of < self.clients:
            raise ValueError(f"partition.of: {self.partition.of} are fewer than data.clients, {self.clients}")
        return self

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({*self.datasets}) < len(self.datasets):
            raise ValueError(f"a dataset is joined to itself: {', '.join(self.datasets)}")
        return self

    @property
    def datasets(self) -> tuple[str, ...]:
        """All datasets it is made of, in the order of their sites."""
        return (self.dataset, *self.sources)

    @property
    def held_out(self) -> bool:
        """Whether there is a validation part."""
        return self.validation != 0

    def seed_of(self, run_seed: int) -> int:
        """Return the seed of all that is drawn to make the data of a run."""
        return run_seed if self.draw is None else self.draw

    def partition_key(self, seed: int) -> str:
        """Return the 16 hex digits that name the partition file of this rule and run's seed."""
        facts = {"data": self.model_dump(mode="json"), "seed": self.seed_of(seed), "numerics": NUMERICS}
        return digest(facts)
