"""Partition rules, one file each; every file defines ``partition(pool, spec, n_clients, rng) -> Deal``.

A rule deals the positions ``0 .. n - 1`` of a :class:`Pool` to clients. It gets every fact that a rule may
need (labels as trained on, original classes, groups such as hospitals), draws from ``rng`` only, ends for any
input, and says what it left over or repaired. A separate package adds a rule through an entry point of the
group ``fedbench.data.partitions``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedbench.errors import UserError
from fedbench.spec import PartitionSpec


@dataclass(frozen=True)
class Pool:
    """The training samples to deal.

    Attributes:
        labels: ``[n]`` int64, as trained on.
        classes: ``[n]`` int64, original.
        groups: ``[n]`` int64 patient or site, where the dataset knows it.
        sites: ``[n]`` int64 hospital, where the dataset knows it, or the place of its dataset among several.
    """

    labels: np.ndarray
    classes: np.ndarray
    groups: np.ndarray | None = None
    sites: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Deal:
    """What each client got, as positions in the pool; remarks and further facts for the record (JSON)."""

    clients: list[np.ndarray]
    remarks: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def leftover(number: int, n_clients: int) -> tuple[str, ...]:
    """Remark that samples were left out because the clients get equally many."""
    return (f"{number} samples left out: they do not divide evenly by {n_clients} clients",) if number else ()


def client_each(
    pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator, owner: str
) -> Deal:
    """Give client k all samples of the k-th ``owner`` (a site, a group) that has some; nothing is drawn.

    Raises:
        UserError: the dataset does not know them, or they are not ``n_clients``.
    """
    rule, owners = f"partition rule 'by_{owner}'", getattr(pool, f"{owner}s")
    if owners is None:
        raise UserError(f"{rule} needs a dataset that knows the {owner} of each sample.")
    names = np.unique(owners)
    if len(names) != n_clients:
        raise UserError(
            f"{rule} makes a client of each of the {len(names)} {owner}s that have training samples,"
            f" but data.clients is {n_clients}: set it to {len(names)}."
        )
    return Deal([np.flatnonzero(owners == name) for name in names])
