"""What a paper's file says of how hyper-parameters are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fedbench.spec import Spec
from fedbench.study.claims import Value
from fedbench.study.entries import TrainPiece


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is given twice; it would count as two repeats")
    return seeds


def _on_validation(metric: str) -> str:
    if not metric.startswith("val_"):
        raise ValueError(f"{metric!r} is not measured on validation data: choose one that begins with val_")
    return metric


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_distinct)]


class StableSpec(Spec):
    """Short runs of the leading trial: it is rejected if one of them diverges or scores below ``reach``.

    Training mostly fails early and depends on the seed there, so that many short runs show what a few long ones miss.
    """

    added_later: ClassVar[tuple[str, ...]] = ("metric",)

    train: TrainPiece
    """Changes to `train` of the short runs."""
    setting: dict[str, Value] = {}
    """The setting of the short runs, where it differs from the setting of the trials."""
    seeds: Seeds
    """The seeds of the short runs; they differ from the seeds of the trials."""
    reach: float | None = None
    """The score that each short run has to reach."""
    metric: Annotated[str, AfterValidator(_on_validation)] | None = None
    """The validation metric that has to reach `reach`. Default: the metric of the trials."""


class TrialSpec(Spec):
    """The keys of `tune` that differ on one dataset."""

    trials: int | None = Field(None, ge=1)
    """The number of trials of each method on this dataset: the first trials of the method's grid."""
    metric: Annotated[str, AfterValidator(_on_validation)] | None = None
    """The validation metric on this dataset."""
    validation: float | None = Field(None, gt=0, lt=1)
    """The share of training data that is held out on this dataset."""
    train: TrainPiece = {}
    """Changes to `train` on this dataset."""
    seeds: Seeds | None = None
    """Seeds of a trial on this dataset."""
    stable: StableSpec | None = None
    """Short runs on this dataset."""


class TuneSpec(Spec):
    """How hyper-parameters are chosen: at which setting, how long a trial is, how many trials a method gets.

    A trial is a run for each of ``seeds``, as long as it leads (:func:`fedbench.train.tune.trials.race`), and then
    the short runs of ``stable``.
    """

    added_later: ClassVar[tuple[str, ...]] = ("each", "stable")

    setting: dict[str, Value]
    """The setting of the trials."""
    each: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field({}, max_length=1)
    """A setting and its values: every method is tuned again at each value. At all other settings the tuned values are
    shared."""
    trials: int = Field(ge=1)
    """Number of trials of each method."""
    metric: Annotated[str, AfterValidator(_on_validation)]
    """The validation metric by which trials are compared."""
    validation: float | None = Field(None, gt=0, lt=1)
    """The share of training data that is held out for trials. Default: the validation part of the runs
    themselves."""
    train: TrainPiece = {}
    """Changes to `train` in trials."""
    per_dataset: dict[str, TrialSpec] = {}
    """What differs on a dataset, in the same way for all methods."""
    seeds: Seeds
    """The seeds of a trial; they differ from the seeds of the final runs."""
    stable: StableSpec | None = None
    """Short runs that the leading trial must survive."""

    @model_validator(mode="after")
    def _fits_together(self) -> TuneSpec:
        for dataset, changes in self.per_dataset.items():
            if (changes.trials or 0) > self.trials:
                raise ValueError(
                    f"per_dataset.{dataset}.trials: {changes.trials} are more than the {self.trials} of every grid"
                )
        for tune in (self, *map(self.on, self.per_dataset)):
            if tune.stable is not None and (twice := {*tune.seeds} & {*tune.stable.seeds}):
                raise ValueError(f"stable.seeds: {min(twice)} is one of `seeds`; short runs need others")
        for spec in self.stables():
            for name in spec.setting.keys() & self.each.keys():
                raise ValueError(f"stable.setting.{name}: `each` gives its values")
        return self

    def on(self, dataset: str) -> TuneSpec:
        """Return what holds on a dataset, with nothing left that depends on it."""
        differing = self.per_dataset.get(dataset, TrialSpec())
        changes = {name: value for name, value in differing if value is not None}
        changes["train"] = {**self.train, **differing.train}
        return self.model_copy(update={**changes, "per_dataset": {}})

    @property
    def short_metric(self) -> str:
        """The metric of the short runs."""
        return (self.stable and self.stable.metric) or self.metric

    def stables(self) -> list[StableSpec]:
        """List the short runs of all datasets."""
        stables = [self.stable, *(differing.stable for differing in self.per_dataset.values())]
        return [stable for stable in stables if stable is not None]

    def protocol(self) -> dict[str, Any]:
        """Return how the trials of a dataset are made, as their file says it."""
        return self.model_dump(mode="json", exclude={"per_dataset"})

    def at(self, values: Mapping[str, Value]) -> TuneSpec:
        """Return what holds at values of the settings in ``each``, with nothing left that depends on them."""
        return self.model_copy(update={"setting": {**self.setting, **values}, "each": {}})

    def points(self) -> list[dict[str, Value]]:
        """List where everything is tuned: one empty dict without ``each``."""
        return [{name: value} for name, values in self.each.items() for value in values] or [{}]


class _Length(BaseModel):
    iterations: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    rounds: int | None = Field(None, ge=1)
    cycles: int | None = Field(None, ge=1)


class _Stable(BaseModel):
    metric: str | None = None


class _Protocol(BaseModel):
    train: _Length | None = None
    metric: str | None = None
    stable: _Stable | None = None


class _Trial(BaseModel):
    model_config = ConfigDict(strict=True)

    runs: dict[str, float | None] = {}
    short: dict[str, float | None] = {}


class Trials(BaseModel):
    """What a file under ``config/tuned`` needs to hold: values by method and name, scores of runs, and the protocol."""

    model_config = ConfigDict(strict=True)

    chosen: dict[str, dict[str, Any]]
    scores: dict[str, list[_Trial]] = {}
    commits: dict[str, str] = {}
    code: dict[str, str] = {}
    protocol: _Protocol = _Protocol()
