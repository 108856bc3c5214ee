"""What a paper's file says of how hyper-parameters are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fedbench.plan.claims import Value
from fedbench.specs import Spec


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
    """Short runs that the trial in the lead must survive: if one diverges or ends short of ``reach``, it is out.

    Training mostly fails early and depends on the seed there, so that many short runs show what a few long ones miss.
    ``train`` and ``setting`` are laid over those of the trials; ``metric`` is what has to reach it, that of the trials
    where it is left out.
    """

    late: ClassVar[tuple[str, ...]] = ("metric",)

    train: dict[str, Any]
    setting: dict[str, Value] = {}
    seeds: Seeds
    reach: float | None = None
    metric: Annotated[str, AfterValidator(_on_validation)] | None = None


class TrialSpec(Spec):
    """What trials on one dataset have of their own."""

    trials: int | None = Field(None, ge=1)
    metric: Annotated[str, AfterValidator(_on_validation)] | None = None
    train: dict[str, Any] = {}
    seeds: Seeds | None = None
    stable: StableSpec | None = None


class TuneSpec(Spec):
    """How hyper-parameters are chosen: on which setting, how long a trial is, how many a method gets.

    A trial is a run for each of ``seeds``, which are none of the final runs', as long as it leads
    (:func:`fedbench.jobs.race.race`), and then the short runs of ``stable``. ``validation`` is the share of
    the training data held out for it; left out, the runs have a validation part as they are configured. ``per_dataset``
    changes metric, ``train``, seeds, ``stable`` and ``trials`` (each method makes the first of its grid), for all
    methods alike. With ``each``, everything is tuned apart at each of some values of a setting, such as every
    communication window, with the same trials; elsewhere nothing is.
    """

    late: ClassVar[tuple[str, ...]] = ("each",)

    setting: dict[str, Value]
    each: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field({}, max_length=1)
    trials: int = Field(ge=1)
    metric: Annotated[str, AfterValidator(_on_validation)]
    validation: float | None = Field(None, gt=0, lt=1)
    train: dict[str, Any] = {}
    per_dataset: dict[str, TrialSpec] = {}
    seeds: Seeds
    stable: StableSpec | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> TuneSpec:
        for dataset, own in self.per_dataset.items():
            if (own.trials or 0) > self.trials:
                raise ValueError(
                    f"per_dataset.{dataset}.trials: {own.trials} are more than the {self.trials} of every grid"
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
        own = self.per_dataset.get(dataset, TrialSpec())
        changed = {
            "trials": own.trials or self.trials,
            "metric": own.metric or self.metric,
            "train": {**self.train, **own.train},
            "seeds": own.seeds or self.seeds,
            "stable": own.stable or self.stable,
            "per_dataset": {},
        }
        return self.model_copy(update=changed)

    def stables(self) -> list[StableSpec]:
        """List the short runs of all datasets."""
        found = [self.stable, *(own.stable for own in self.per_dataset.values())]
        return [stable for stable in found if stable is not None]

    def protocol(self) -> dict[str, Any]:
        """Return how the trials of a dataset are made, as their file says it."""
        given = self.model_dump(mode="json", exclude={"per_dataset"})
        return {name: value for name, value in given.items() if name != "stable" or value is not None}

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


class _Protocol(BaseModel):
    train: _Length | None = None


class Trials(BaseModel):
    """What a file under ``config/tuned`` needs to hold: values by method and name, and how long the trials were."""

    model_config = ConfigDict(strict=True)

    chosen: dict[str, dict[str, Any]]
    protocol: _Protocol = _Protocol()
