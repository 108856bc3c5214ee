"""When a run ends, is evaluated, and takes smaller steps: all counted in rounds."""

from __future__ import annotations

import math

import numpy as np

from fedbench.data.clients import ClientData
from fedbench.errors import UserError
from fedbench.specs import TrainSpec


class Schedule:
    """The rounds of one run.

    Attributes:
        rounds: how many there are.
        evaluated: after how many rounds the global model is evaluated, the untrained one (0) included.
        stages: the rounds that begin with a smaller step size.
    """

    def __init__(self, train: TrainSpec, data: ClientData) -> None:
        self.rounds = _count(train, data)
        points = np.linspace(0, self.rounds, train.evaluations + 1)
        self.evaluated = set(points.round().astype(int).tolist())
        self.stages = [max(1, round(at * self.rounds)) for at in train.decay_at]
        self._factor = train.decay_factor

    def decay(self, round_index: int) -> float:
        """Return what a round's step sizes are multiplied by."""
        return self._factor ** sum(round_index >= stage for stage in self.stages)


def _count(train: TrainSpec, data: ClientData) -> int:
    """Count rounds: as given, else enough of them for the iterations or for the longest client's epochs."""
    if train.rounds is not None:
        return train.rounds
    assert train.period is not None
    iterations = train.iterations
    if iterations is None:
        assert train.epochs is not None
        per_epoch = max(size // data.batch_size(client) for client, size in enumerate(data.sizes))
        iterations = round(train.epochs * per_epoch)
    if iterations < train.period:
        raise UserError(f"{iterations} iterations are fewer than one communication period of {train.period}")
    return math.ceil(iterations / train.period)
