"""The clients that take part in a round."""

from __future__ import annotations

import numpy as np

from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.random import stream
from fedbench.spec import ParticipationSpec


def participants(spec: ParticipationSpec, n_clients: int, round_index: int, seed: int) -> list[int]:
    """Return the clients of a round in ascending order: all, or a uniform draw without replacement.

    Clients are drawn from all clients, or under ``cyclic`` from the group of the current turn.

    Raises:
        UserError: there are too few clients.
    """
    check_clients(spec, n_clients)
    if spec.rule == "full":
        return list(range(n_clients))
    assert spec.clients is not None
    turns = groups(spec, n_clients, seed) if spec.rule == "cyclic" else [list(range(n_clients))]
    group = turns[round_index % len(turns)]
    chosen = stream(seed, "participation", round_index).choice(len(group), spec.clients, replace=False)
    return sorted(group[int(place)] for place in chosen)


def groups(spec: ParticipationSpec, n_clients: int, seed: int) -> list[list[int]]:
    """Deal the clients to the groups that take turns, in the order of their turns; sizes differ by at most one."""
    assert spec.groups is not None
    order = stream(seed, "groups").permutation(n_clients)
    return [sorted(part.tolist()) for part in np.array_split(order, spec.groups)]


def check_method(method: FederatedMethod, name: str, spec: ParticipationSpec) -> None:
    """Raise UserError if rounds leave clients out but the method called ``name`` needs all of them."""
    if spec.rule != "full" and not method.partial:
        raise UserError(f"method {name!r} needs all clients in every round: participation rule 'full'")


def check_clients(spec: ParticipationSpec, n_clients: int) -> None:
    """Raise UserError where there are too few clients."""
    try:
        spec.check(n_clients)
    except ValueError as error:
        raise UserError(str(error)) from None
