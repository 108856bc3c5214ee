"""What a run is: the typed, validated description of everything that changes its numbers, and its key."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from fedbench.errors import UserError

NUMERICS = 1
"""Version of the numerics. Raise it when a change of code changes results: every key changes with it."""


class Spec(BaseModel):
    """Base of all specifications: immutable, and a key nobody knows is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LabelSpec(Spec):
    """How original classes become the labels that are trained on."""

    rule: Literal["original", "halves"] = "original"
    positive_half: Literal["first", "second"] = "first"


class ImbalanceSpec(Spec):
    """Which training samples are dropped (algorithms: positives to a ratio, or minority classes to 1/rho)."""

    rule: Literal["none", "drop_positives", "minority"] = "none"
    imratio: float | None = Field(None, gt=0, lt=1)
    rho: float | None = Field(None, ge=1)
    minority: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule == "drop_positives" and self.imratio is None:
            raise ValueError("rule 'drop_positives' needs imratio, the share of positives to keep, in (0, 1)")
        if self.rule == "minority" and (self.rho is None or not self.minority):
            raise ValueError("rule 'minority' needs rho >= 1 and the list of minority classes")
        return self


class PartitionSpec(Spec):
    """How the training samples are dealt to clients; ``options`` are for rules that are not ours."""

    rule: str = "even"
    alpha: float | None = Field(None, ge=0, le=1)
    delta: float | None = Field(None, gt=0)
    options: dict[str, Any] = {}

    @model_serializer(mode="wrap")
    def _without_gap(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_gap(dump(self), "options")


class DataSpec(Spec):
    """A dataset as one setting sees it: labels, imbalance, clients, and the share held out for validation.

    ``content`` is the digest of a dataset that a user's own file describes (None for those of the library): when the
    file or what it points at changes, so do the keys, and nothing stale is taken for a result.
    """

    dataset: str
    content: str | None = None
    labels: LabelSpec = LabelSpec()
    imbalance: ImbalanceSpec = ImbalanceSpec()
    partition: PartitionSpec = PartitionSpec()
    clients: int = Field(ge=1)
    validation: float = Field(0.0, ge=0, lt=1)

    @model_serializer(mode="wrap")
    def _without_gap(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_gap(dump(self), "content")

    def partition_key(self, seed: int) -> str:
        """Return the 16 hex digits that name the partition file of this rule and seed."""
        return digest({"data": self.model_dump(mode="json"), "seed": seed, "numerics": NUMERICS})


class NetworkSpec(Spec):
    """A network by the name of its file in ``fedbench.models``, with its options."""

    name: str
    options: dict[str, Any] = {}


class ParticipationSpec(Spec):
    """Who takes part in a round: everybody, or ``clients`` drawn at random without replacement."""

    rule: Literal["full", "random"] = "full"
    clients: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rule == "random") != (self.clients is not None):
            raise ValueError(
                "participation: rule 'random' needs clients (how many a round); rule 'full' takes none"
            )
        return self


class NormalizeSpec(Spec):
    """Per-channel mean and standard deviation subtracted from and divided into inputs in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


class TrainSpec(Spec):
    """How long, in what portions and with which step schedule a run trains.

    ``iterations`` counts local steps of one client, ``epochs`` passes over its data, ``rounds`` communications:
    exactly one is given. A round is ``period`` steps, or ``local_epochs`` passes for clients of unequal size.
    """

    iterations: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    rounds: int | None = Field(None, ge=1)
    period: int | None = Field(None, ge=1)
    local_epochs: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)
    batches_per_epoch: int | None = Field(None, ge=1)
    participation: ParticipationSpec = ParticipationSpec()
    decay_at: tuple[float, ...] = ()
    decay_factor: float = Field(0.1, gt=0, le=1)
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float | None = Field(None, gt=0)
    augment: Literal["none", "crop_flip", "pad_crop_flip"] = "none"
    normalize: NormalizeSpec | None = None
    minority_classes: tuple[int, ...] = ()
    evaluations: int = Field(20, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        def one_of(*names: str) -> None:
            if sum(getattr(self, name) is not None for name in names) != 1:
                raise ValueError(f"give exactly one of {', '.join(names)}")

        one_of("iterations", "epochs", "rounds")
        one_of("period", "local_epochs")
        one_of("batch_size", "batches_per_epoch")
        if self.local_epochs is not None and self.rounds is None:
            raise ValueError("local_epochs goes with rounds")
        if any(not 0 < at < 1 for at in self.decay_at) or list(self.decay_at) != sorted(self.decay_at):
            raise ValueError("decay_at holds ascending fractions of the run, each in (0, 1)")
        return self


class RunSpec(Spec):
    """One run, fully resolved. Two runs with the same key have the same numbers, wherever they were made."""

    data: DataSpec
    network: NetworkSpec
    method: str
    params: dict[str, Any]
    train: TrainSpec
    seed: int = Field(ge=0)
    numerics: int = NUMERICS

    @property
    def key(self) -> str:
        """The 16 hex digits that name this run in the store."""
        return digest(self.model_dump(mode="json"))


def _without_gap(dumped: dict[str, Any], late: str) -> dict[str, Any]:
    """Leave out a field that is empty and came late: the keys of runs from before it stay what they were."""
    return {key: value for key, value in dumped.items() if key != late or value}


def digest(value: Any) -> str:
    """Return 16 hex digits of the SHA-256 of ``value`` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: Any, source: str | Path) -> Model:
    """Validate ``data`` as ``model``; a mistake becomes a :class:`UserError` naming the source and the key."""
    import difflib

    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            where = ".".join(str(part) for part in item["loc"])
            if item["type"] == "extra_forbidden":
                key = str(item["loc"][-1])  # may be right elsewhere in the file
                near = difflib.get_close_matches(key, _field_names(model) - {key}, n=1)
                lines.append(f"{where}: unknown key." + (f" Did you mean {near[0]!r}?" if near else ""))
            else:
                given = "" if item["type"] == "missing" else f" (got {item['input']!r})"
                lines.append(f"{where or 'the whole'}: {item['msg'].removeprefix('Value error, ')}{given}")
        raise UserError(f"{source}: " + "; ".join(lines)) from None


def _field_names(model: type[BaseModel]) -> set[str]:
    """Collect the keys of a model and of the models inside it: candidates for a misspelt key."""
    names, todo, seen = set[str](), [model], set[type]()
    while todo:
        current = todo.pop()
        seen.add(current)
        for name, field in current.model_fields.items():
            names.add(name)
            for part in _types_in(field.annotation):
                if isinstance(part, type) and issubclass(part, BaseModel) and part not in seen:
                    todo.append(part)
    return names


def _types_in(annotation: Any) -> list[Any]:
    inner = [part for arg in getattr(annotation, "__args__", ()) for part in _types_in(arg)]
    return [annotation, *inner]
