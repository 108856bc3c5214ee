"""Who takes part in a round; when a run ends, is evaluated and reduces its step sizes, all counted in rounds."""

from __future__ import annotations

import math

import numpy as np

from fedbench.data.clients import ClientData
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.problem import Turn
from fedbench.random import stream
from fedbench.spec import ParticipationSpec, TrainSpec


class Schedule:
    """The rounds of one run.

    Attributes:
        rounds: how many there are.
        evaluated: after how many rounds the global model is evaluated, the untrained one (0) included. With cycles only
            after whole cycles: within a cycle the latest groups would have an advantage.
        stages: the rounds that begin with a smaller step size.
    """

    def __init__(self, train: TrainSpec, data: ClientData) -> None:
        self._length = train.participation.groups or 1
        self.rounds = _count(train, data)
        cycles, rest = divmod(self.rounds, self._length)
        if rest:
            raise UserError(
                f"{self.rounds} rounds are not a whole number of cycles of {self._length} (participation.groups)"
            )
        points = np.linspace(0, cycles, train.evaluations + 1)
        self.evaluated = set((points.round().astype(int) * self._length).tolist())
        self.stages = _stages(train, self.rounds, self._length)
        self._factor = train.decay_factor
        if train.stages is not None:
            self._factor = train.stages.factor
        elif train.stage_factor is not None:
            self._factor = train.stage_factor

    def decay(self, round_index: int) -> float:
        """Return the factor of a round's step sizes."""
        return self._factor ** sum(round_index >= stage for stage in self.stages)

    def turn(self, round_index: int) -> Turn:
        """Return the position of a round in the cycles."""
        return Turn(round_index, self._length)


def _count(train: TrainSpec, data: ClientData) -> int:
    """Count rounds: as given, else enough of them for the iterations or for the longest client's epochs."""
    iterations = train.iterations
    if train.epochs is not None:
        per_epoch = max(size // data.batch_size(client) for client, size in enumerate(data.sizes))
        iterations = round(train.epochs * per_epoch)
    if iterations is not None and train.period is not None and iterations < train.period:
        raise UserError(f"{iterations} iterations are fewer than one communication period of {train.period}")
    if (known := train.known_rounds) is not None:
        return known
    assert iterations is not None and train.period is not None
    return math.ceil(iterations / train.period)


def _stages(train: TrainSpec, rounds: int, cycle: int) -> list[int]:
    """List the rounds that begin a stage, each the first of a ``cycle``: else the groups that come late in one would
    train at other step sizes than those before them. A fraction of the run is the nearest such round; a stage of
    ``stage_every`` iterations ends with the cycle they end in.
    """
    if train.stage_every is not None:
        assert train.period is not None
        ends = range(train.stage_every, rounds * train.period, train.stage_every)
        begins = [math.ceil(at / (train.period * cycle)) * cycle for at in ends]
    elif train.stages is not None:
        begins, length, end = [], float(train.stages.first), float(train.stages.first)
        while round(end) * cycle < rounds:
            begins.append(round(end) * cycle)
            length *= train.stages.scale
            end += length
    else:
        begins = [max(1, round(at * (rounds // cycle))) * cycle for at in train.decay_at]
        return [stage for stage in begins if stage < rounds]
    begins = [stage for stage in begins if stage < rounds]
    twice = [stage for stage in begins if begins.count(stage) > 1]
    if twice:
        raise UserError(f"two stages begin in round {twice[0]}: make them longer, or the rounds shorter")
    if not begins:
        raise UserError(f"the first stage ends with the run or later ({rounds} rounds): make stages shorter")
    return begins


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
