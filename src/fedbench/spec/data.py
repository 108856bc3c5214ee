"""The data of a run: dataset, labels, imbalance, clients, hold-out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from fedbench.spec.base import Name, Spec, digest_of, mapping_of

NUMERICS = 1
"""Version of the numerics. Raise it when a change of code changes results; every key changes with it."""


class LabelSpec(Spec):
    """How the dataset's classes become the labels of training."""

    added_later: ClassVar[tuple[str, ...]] = ("positive", "flip")
    reads: ClassVar[dict[str, tuple[str, ...]]] = {
        "original": (),
        "halves": ("positive_half",),
        "random_halves": ("positive_half",),
        "named": ("positive",),
    }

    rule: Literal["original", "halves", "random_halves", "named"] = "original"
    """`original`: the classes as they are (of two, the second is positive). `halves`: one half of the classes
    is positive. `random_halves`: the same, after the seed has shuffled the classes. `named`: the classes in
    `positive` are positive."""
    positive_half: Literal["first", "second"] = "first"
    """With `halves` and `random_halves`: which half of the classes is positive."""
    positive: tuple[int | str, ...] = ()
    """With `named`: the positive classes, by name or number."""
    flip: float = Field(0.0, ge=0, lt=1)
    """Label noise: the share of the clients' positives that are relabelled as negative. The validation and the
    test part keep their labels."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rule == "named") != bool(self.positive):
            raise ValueError("rule 'named' and positive, the list of positive classes, go together")
        return self


class ImbalanceSpec(Spec):
    """Which training samples are dropped: positives down to a ratio, a share of the positives, or minority classes
    down to 1/rho of their samples."""

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
    """`none`: nothing is dropped. `drop_positives`: random positives are dropped until the share `imratio` of the
    samples is positive. `drop_positives_per_class`: the same, and equally many of each positive class stay.
    `remove_positives`: the share `share` of the positives is dropped. `minority`: each class in `minority`
    keeps one sample in `rho`."""
    imratio: float | None = Field(None, gt=0, lt=1)
    """With `drop_positives` and `drop_positives_per_class`: the share of positives among the training samples
    that are left."""
    rho: float | None = Field(None, ge=1)
    """With `minority`: each minority class keeps 1/`rho` of its training samples."""
    minority: tuple[int, ...] = ()
    """With `minority`: the minority classes, by number."""
    share: float | None = Field(None, ge=0, lt=1)
    """With `remove_positives`: the share of the positives that is dropped."""

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
    """`even`: a random split, with the same share of each class for every client. `mix`: the share `alpha` of the
    samples at random, the rest sorted by class. `dirichlet`: clients of equal size, each with class shares drawn
    from Dir(`delta`). `class_dirichlet`: each class is split among the clients in shares drawn from Dir(`delta`).
    `silos`: all samples of a class belong to one client. `groups`: whole groups (patients, characters) are dealt
    to clients. `sites`: each site has clients of its own, among which its samples are dealt. `by_group`,
    `by_site`: one client for each group or site."""
    alpha: float | None = Field(None, ge=0, le=1)
    """With `mix`: the share of the samples that is dealt at random; 0 is one class a client, 1 is i.i.d."""
    delta: float | None = Field(None, gt=0)
    """With `dirichlet` and `class_dirichlet`: the concentration; smaller is more unequal."""
    by: Literal["classes", "labels"] = "classes"
    """With `class_dirichlet`: whether the original classes or the labels are split in shares."""
    least: int = Field(8, ge=1)
    """With `class_dirichlet`: the smallest number of samples of a client."""
    paired: bool = False
    """With `silos`: positive and negative classes are dealt in the same shuffled order, as in CODASCA's program
    (050b00c, main_codasca_cifar.py 233-236)."""
    remainder: Literal["last", "random"] = "last"
    """With `mix`: which samples are left out if they do not divide evenly among the clients: samples of the
    `last` class, or `random` samples, as in climb's program (c841a4d, utils/data_utils.py 146-163)."""
    of: int | None = Field(None, ge=1, le=1_000_000)
    """The samples are dealt to this many clients, and only the first `data.clients` of them train. With
    `clients: 1`, one client trains alone on its share."""
    options: dict[str, Any] = {}
    """Options of a rule from a file or package of your own."""


_CLIENTS: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 1, "maximum": 1_000_000}, {"const": "sites"}]
}
"""The values of ``clients`` in a YAML; planning replaces ``sites`` by the number of sites."""


class DataSpec(Spec):
    """The data of a run: a dataset, its labels, imbalance and clients, and the share held out for validation."""

    added_later: ClassVar[tuple[str, ...]] = ("content", "draw", "validation_of", "sources", "tests")

    dataset: Name
    """Name of a dataset: a file in `src/fedbench/data/datasets`, a YAML file in `config/datasets`, or an entry
    point."""
    content: str | None = None
    """Filled in by fedbench: the digest of a dataset that a YAML file describes. When the file or its data
    change, the keys of runs change."""
    labels: LabelSpec = LabelSpec()
    """How the dataset's classes become labels."""
    imbalance: ImbalanceSpec = ImbalanceSpec()
    """Which training samples are dropped."""
    partition: PartitionSpec = PartitionSpec()
    """How the training samples are dealt to clients."""
    clients: Annotated[int, WithJsonSchema(_CLIENTS)] = Field(ge=1, le=1_000_000)
    """Number of clients. `sites` in a YAML: one client for each site, such as a hospital."""
    validation: Annotated[float, Field(ge=0, lt=1, strict=True)] | Literal["own"] = 0.0
    """The share of training samples that is held out for validation, or `own`: the dataset's official
    validation part."""
    validation_of: Literal["kept", "all"] = "kept"
    """Whether the validation share is drawn after the imbalance rule, from the samples `kept`, or before it, from
    `all` samples."""
    draw: int | None = Field(None, ge=0)
    """The seed that decides which samples are dropped, held out and dealt to which client. Default: the seed of
    the run."""
    sources: tuple[str, ...] = ()
    """Further datasets, of other sites. Their training parts are added to the training part of `dataset`."""
    tests: Literal["own", "all"] = "own"
    """With `sources`: the test part of `dataset` alone (`own`), or the test parts of `all` datasets."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.partition.of is not None and self.partition.of < self.clients:
            raise ValueError(f"partition.of: {self.partition.of} are fewer than data.clients, {self.clients}")
        if len({*self.datasets}) < len(self.datasets):
            raise ValueError(f"a dataset is joined to itself: {', '.join(self.datasets)}")
        return self

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets whose samples are used, in the order of their sites."""
        return (self.dataset, *self.sources)

    @property
    def held_out(self) -> bool:
        """Whether there is a validation part."""
        return self.validation != 0

    def seed_of(self, run_seed: int) -> int:
        """Return the seed by which samples are dropped, held out and dealt in a run with seed ``run_seed``."""
        return run_seed if self.draw is None else self.draw

    def partition_key(self, seed: int) -> str:
        """Return the 16 hex digits that name the partition file of these data in a run with this seed."""
        facts = {"data": self.canonical, "seed": str(self.seed_of(seed)), "numerics": str(NUMERICS)}
        return digest_of(mapping_of(facts))
