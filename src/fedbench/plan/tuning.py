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
Setting = dict[str, Value | list[Value]]
"""Values of settings: one for all seeds, or a list with one for each."""


class TrialSpec(Spec):
    """What trials on one dataset have of their own."""

    trials: int | None = Field(None, ge=1)
    metric: Annotated[str, AfterValidator(_on_validation)] | None = None
    train: dict[str, Any] = {}
    setting: Setting = {}
    seeds: Seeds | None = None


class TuneSpec(Spec):
    """How hyper-parameters are chosen: on which setting, how long a trial is, how many a method gets.

    A trial is a run for each of ``seeds``, which are none of the final runs', as long as it leads
    (:func:`fedbench.jobs.race.race`). Where ``setting`` gives a list, each seed has its own value, so that what is
    chosen is good at all of them. ``validation`` is the share of the training data held out for it; left out, the runs
    have a validation part as they are configured. ``per_dataset`` changes metric, ``train``, settings, seeds and
    ``trials`` (each method makes the first of its grid), for all methods alike. With ``each``, everything is tuned
    apart at each of some values of a setting, such as every communication window, with the same trials; elsewhere
    nothing is.
    """

    late: ClassVar[tuple[str, ...]] = ("each",)

    setting: Setting
    each: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field({}, max_length=1)
    trials: int = Field(ge=1)
    metric: Annotated[str, AfterValidator(_on_validation)]
    validation: float | None = Field(None, gt=0, lt=1)
    train: dict[str, Any] = {}
    per_dataset: dict[str, TrialSpec] = {}
    seeds: Seeds

    @model_validator(mode="after")
    def _no_more_than_a_grid_has(self) -> TuneSpec:
        for dataset, own in self.per_dataset.items():
            if (own.trials or 0) > self.trials:
                raise ValueError(
                    f"per_dataset.{dataset}.trials: {own.trials} are more than the {self.trials} of every grid"
                )
        return self

    @model_validator(mode="after")
    def _each_is_tuned_apart(self) -> TuneSpec:
        for dataset, own in self.per_dataset.items():
            for name in own.setting.keys() & self.each.keys():
                raise ValueError(f"per_dataset.{dataset}.setting.{name}: `each` gives its values")
        return self

    @model_validator(mode="after")
    def _a_value_for_each_seed(self) -> TuneSpec:
        for whose, tune in (
            ("", self),
            *((f"per_dataset.{dataset}: ", self.on(dataset)) for dataset in self.per_dataset),
        ):
            for name, values in tune.setting.items():
                if isinstance(values, list) and len(values) != len(tune.seeds):
                    raise ValueError(
                        f"{whose}setting.{name}: {len(values)} values for {len(tune.seeds)} seeds; give one for each"
                        " seed, or one for all"
                    )
        return self

    def on(self, dataset: str) -> TuneSpec:
        """Return what holds on a dataset, with nothing left that depends on it."""
        own = self.per_dataset.get(dataset, TrialSpec())
        changed = {
            "trials": own.trials or self.trials,
            "metric": own.metric or self.metric,
            "train": {**self.train, **own.train},
            "setting": {**self.setting, **own.setting},
            "seeds": own.seeds or self.seeds,
            "per_dataset": {},
        }
        return self.model_copy(update=changed)

    def at(self, values: Mapping[str, Value]) -> TuneSpec:
        """Return what holds at values of the settings in ``each``, with nothing left that depends on them."""
        return self.model_copy(update={"setting": {**self.setting, **values}, "each": {}})

    def runs(self) -> list[tuple[int, dict[str, Value]]]:
        """List the runs of a trial: the seed of each, and the values of settings that it has."""
        return [
            (
                seed,
                {
                    name: value[i] if isinstance(value, list) else value
                    for name, value in self.setting.items()
                },
            )
            for i, seed in enumerate(self.seeds)
        ]

    def values(self, setting: str) -> set[Value]:
        """Collect what a setting is in trials, on any dataset."""
        given = [tune.setting.get(setting, []) for tune in (self, *map(self.on, self.per_dataset))]
        return {value for found in given for value in (found if isinstance(found, list) else [found])}

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
