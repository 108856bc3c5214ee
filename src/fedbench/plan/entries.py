"""What a paper's file says of a dataset, a method and a setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from fedbench.plan.claims import Value
from fedbench.specs import Name, Spec

PIECES = ("data", "network", "train", "task", "start")
"""The parts of a run specification that a dataset or a method can lay over a paper's defaults."""


class Entry(Spec):
    """What datasets and methods have in common."""

    train: dict[str, Any] = {}
    task: dict[str, Any] | None = None
    start: dict[str, Any] | None = None

    def piece(self) -> dict[str, Any]:
        """Return what is written here as a piece of a run specification; a written ``null`` takes away."""
        return {name: getattr(self, name) for name in PIECES if name in self.model_fields_set}


class DatasetEntry(Entry):
    """One dataset of a paper under the label it prints; ``printed: false`` for our own additions.

    ``fixed`` is laid over everything else, settings included: what a small stand-in cannot follow, said in ``note``.
    """

    printed: bool = True
    note: str = ""
    data: dict[str, Any]
    network: dict[str, Any]
    fixed: dict[str, Any] = {}


class TwinSpec(Spec):
    """A method is the method ``of`` if its hyper-parameters have the values in ``when``, which may be empty."""

    of: str
    when: dict[str, Any] = {}


class MethodEntry(Entry):
    """One method of a paper: the algorithm's file name and every hyper-parameter; ``grid`` is what tuning tries.

    ``only`` names the values of settings, or datasets, at which the method is run; elsewhere it has no cell. ``at``
    gives, for values of a setting or for datasets, a piece of a run specification that is laid over the settings. A key
    of ``grid`` with dots is a place in the run specification (``train.decay_at``), any other a hyper-parameter.
    ``published`` names those of ``params`` that are the paper's or its program's: they stand before tuned ones where
    ``constants`` is ``paper``. ``twin`` names the method that this one is under some values: on a leaderboard the two
    have one rank.
    """

    algorithm: Name
    params: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    published: list[str] = []
    only: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    at: dict[str, dict[Value, dict[str, Any]]] = {}
    twin: TwinSpec | None = None

    @model_validator(mode="after")
    def _params_are_given(self) -> MethodEntry:
        """Refuse a hyper-parameter that is named elsewhere and has no value."""
        for place, names in (
            ("published", self.published),
            ("twin.when", self.twin.when if self.twin else []),
        ):
            if lost := [name for name in names if name not in self.params]:
                raise ValueError(f"{place}: {lost[0]!r} is none of params")
        return self

    def has(self, place: Mapping[str, Value]) -> bool:
        """Say whether the method is run at a place: a dataset and a setting, or a part of them."""
        return all(place[name] in values for name, values in self.only.items() if name in place)


class SettingEntry(Spec):
    """One thing a table varies: the places of the run specification it sets, and its default.

    ``values`` translates a value into what is set; the place ``.`` takes a translation that is a piece of a run
    specification itself. On datasets other than ``datasets``, if some are named, the setting sets nothing.
    """

    sets: list[str]
    default: Value
    label: str
    values: dict[Value, Any] = {}
    datasets: list[str] = []

    def holds(self, dataset: str) -> bool:
        """Say whether the setting sets something on a dataset."""
        return not self.datasets or dataset in self.datasets
