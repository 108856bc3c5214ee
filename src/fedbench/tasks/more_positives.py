"""Classification on the batches of ``average_precision``, for methods with their own loss, such as fcsg's baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Net
from fedbench.task import Rounds
from fedbench.tasks import _positives, classification
from fedbench.tasks._nested import at_least, need_period

NAME = "more_positives"


@dataclass(frozen=True)
class Task(classification.Task):
    """Trains and measures as ``classification`` does; each batch is a mini-batch together with the additional positives
    that ``average_precision`` draws. All samples of a batch weigh the same, as in D-AUPRC, a program of fcsg's first
    author, whose batches have a fixed number of positives and are filled with negatives (3f96df4, utils.py 162-191).

    Attributes:
        positives: additional positives of a step, at least 1.
    """

    positives: int

    def __post_init__(self) -> None:
        at_least(NAME, "positives", self.positives, 1)

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse more than two classes, local epochs, and ``train.positives``."""
        need_period(NAME, data)
        if data.pairs is not None:
            raise UserError(f"task {NAME!r} adds positives itself: leave out train.positives")
        if arrays.n_classes != 2:
            raise UserError(f"task {NAME!r} is for two classes, and the data have {arrays.n_classes}")
        _positives.check_padding(NAME, data, self.positives, net)

    def prior(self, data: ClientData) -> float:
        """Return the share of positives in batches, which is larger than in the data."""
        batch = np.array([data.batch_size(client) for client in range(len(data.sizes))])
        positives = np.array([len(_positives.members(data, client)) for client in range(len(data.sizes))])
        more = np.minimum(self.positives, positives)
        shares = (more + batch * positives / data.sizes) / (more + batch)
        pooled = data.spec.prior == "pooled" or data.spec.weights == "samples"
        return float(np.average(shares, weights=data.sizes if pooled else None))

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Add positives to each mini-batch."""
        return _positives.rounds(data, clients, self.positives, round_index, purpose, _positives.together)

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Rounds:
        """Draw one such batch of each client."""
        return _positives.first(data, clients, self.positives, purpose, _positives.together)
