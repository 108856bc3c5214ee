"""What a run trains on: dataset, labels, imbalance, clients, hold-out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from fedbench.spec.base import Name, Spec, digest_of, mapping_of

NUMERICS = 1
"""Version of the numerics. Raise it when a change of code changes results: every key changes with it."""


class LabelSpec(Spec):
    """How original classes become the labels that are trained on."""

    added_later: ClassVar[tuple[str, ...]] = ("positive", "flip")
    reads: ClassVar[dict[str, tuple[str, ...]]] = {
        "original": (),
        "halves": ("positive_half",),
        "random_halves": ("positive_half",),
        "named": ("positive",),
    }

    rule: Literal["original", "halves", "random_halves", "named"] = "original"
    """`original`: the classes as they are (of two, the second is positive). `halves`: one half of the classes
    is positive. `random_halves`: the same, with the classes in an order drawn by the seed. `named`: those
    listed in `positive` are positive."""
    positive_half: Literal["first", "second"] = "first"
    """With `halves` and `random_halves`: which half of the classes is positive."""
    positive: tuple[int | str, ...] = ()
    """With `named`: the positive classes, by name or number."""
    flip: float = Field(0.0, ge=0, lt=1)
    """The share of the clients' positives that are called negative, as noise. Validation and test part stay
    clean."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rule == "named") != bool(self.positive):
            raise ValueError("rule 'named' and positive, the list of positive classes, go together")
        return self


class ImbalanceSpec(Spec):
    """Which training samples are dropped: positives to a ratio, a share of them, or minority classes to 1/rho."""

    added_later: ClassVar[tuple[str, ...]] = ("share",)
    reads: ClassVar[dict[str, tuple[str, ...]]] = {
        "none": (),
        "drop_positives": ("imratio",),
        "drop_positives_per_class": ("imratio",),
        "minority": ("rho", "minority"),
        "remove_positives": ("share",),
    }

    rule: Literal["none", "drop_positives", "drop_positives_per_class", "minority", "remove_positives"] = (
        "none"
    )
    """Which training samples are dropped. `drop_positives`: random positives, until the share `imratio` is
    positive. `drop_positives_per_class`: the same, with equally many of each positive class.
    `remove_positives`: the share `share` of the positives. `minority`: all but one in `rho` of each class
    in `minority`."""
    imratio: float | None = Field(None, gt=0, lt=1)
    """Share of positives among the training samples that are left."""
    rho: float | None = Field(None, ge=1)
    """Each minority class keeps 1/rho of its training samples."""
    minority: tuple[int, ...] = ()
    """The minority classes, by number."""
    share: float | None = Field(None, ge=0, lt=1)
    """The share of the positives that is removed."""

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
    """How the training samples are dealt to clients."""

    added_later: ClassVar[tuple[str, ...]] = ("options", "by", "least", "paired", "remainder", "of")
    reads: ClassVar[dict[str, tuple[str, ...]]] = {
        "mix": ("alpha", "remainder"),
        "dirichlet": ("delta",),
        "class_dirichlet": ("delta", "by", "least"),
        "silos": ("paired",),
        **dict.fromkeys(("even", "groups", "sites", "by_group", "by_site"), ()),
    }

    rule: Name = "even"
    """How training samples are dealt to clients. `even`: a random split. `mix`: a share `alpha` at random, the
    rest sorted by class. `dirichlet`: clients of equal size with class shares drawn from Dir(`delta`).
    `class_dirichlet`: each class dealt in shares drawn from Dir(`delta`). `silos`: no class lies with two
    clients. `groups`: whole groups (patients, characters) are dealt. `sites`: the samples of a site to
    clients of its own. `by_group`, `by_site`: a client for each group or site."""
    alpha: float | None = Field(None, ge=0, le=1)
    """Of `mix`: the share of samples that is dealt at random; 0 is one class a client, 1 is i.i.d."""
    delta: float | None = Field(None, gt=0)
    """Of `dirichlet` and `class_dirichlet`: the concentration; smaller is more unequal."""
    by: Literal["classes", "labels"] = "classes"
    """Of `class_dirichlet`: whether the original classes or the labels are dealt in shares."""
    least: int = Field(8, ge=1)
    """Of `class_dirichlet`: the fewest samples of a client."""
    paired: bool = False
    """Of `silos`: positive and negative classes are dealt in the same shuffled order."""
    remainder: Literal["last", "random"] = "last"
    """Of `mix`: which samples are left out if they do not divide evenly, those of the last class or random
    ones."""
    of: int | None = Field(None, ge=1, le=1_000_000)
    """The samples are dealt to this many clients and only the first `data.clients` of them train. With
    `clients: 1`, one client trains alone on its share."""
    options: dict[str, Any] = {}
    """Options of a rule from a file or package of your own."""


def _share_or_own(value: Any) -> Any:
    """Refuse in one message what is neither, where a union would give one for each of its parts."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value != "own" and not (number and 0 <= value < 1):
        raise ValueError(
            "give the share to hold out, from 0 to less than 1, or own for the dataset's own part"
        )
    return value


_CLIENTS: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 1, "maximum": 1_000_000}, {"const": "sites"}]
}
"""What a YAML may say of ``clients``: planning puts the number of sites."""


class DataSpec(Spec):
    """A dataset as one setting sees it: labels, imbalance, clients, and the share held out for validation."""

    added_later: ClassVar[tuple[str, ...]] = ("content", "draw", "validation_of", "sources", "tests")

    dataset: Name
    """Name of a dataset: a file in `src/fedbench/data/datasets`, a YAML file in `config/datasets`, or an entry
    point."""
    content: str | None = None
    """Filled in by fedbench: the digest of a dataset that a YAML file describes. When the file or its data
    change, so do the keys of runs."""
    labels: LabelSpec = LabelSpec()
    """How original classes become labels."""
    imbalance: ImbalanceSpec = ImbalanceSpec()
    """Which training samples are dropped."""
    partition: PartitionSpec = PartitionSpec()
    """How training samples are dealt to clients."""
    clients: Annotated[int, WithJsonSchema(_CLIENTS)] = Field(ge=1, le=1_000_000)
    """Number of clients. `sites` in a YAML: as many as own the samples, such as hospitals."""
    validation: Annotated[float | Literal["own"], BeforeValidator(_share_or_own)] = 0.0
    """The share of training samples that is held out for validation, or `own`: the dataset's official
    validation part."""
    validation_of: Literal["kept", "all"] = "kept"
    """Whether the validation share is drawn from the samples that the imbalance rule `kept`, or from `all`
    before it."""
    draw: int | None = Field(None, ge=0)
    """Seed of all that is drawn here (dropped, held out, dealt). Default: the seed of the run."""
    sources: tuple[str, ...] = ()
    """Further datasets, of other sites. Their training parts are added to that of `dataset`."""
    tests: Literal["own", "all"] = "own"
    """With `sources`: whether the test part is that of `dataset` alone (`own`) or of all of them."""

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
        facts = {"data": self.canonical, "seed": str(self.seed_of(seed)), "numerics": str(NUMERICS)}
        return digest_of(mapping_of(facts))
