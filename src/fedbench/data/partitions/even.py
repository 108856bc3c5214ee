"""Random even split that keeps the label ratio of the whole in every client (localscgdam, section 6.1)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Deal the shuffled samples of each label in turn, like cards.

    Both the number of samples and the number of each label differ by at most one between clients.
    """
    shuffled = rng.permutation(len(pool))
    cards = shuffled[np.argsort(pool.labels[shuffled], kind="stable")]
    return Deal([cards[client::n_clients] for client in range(n_clients)])
