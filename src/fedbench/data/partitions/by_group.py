"""by_group: every group of the data (a state, a hospital) is a client (cycp's Insurance: one client a state)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool, client_each
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give client k all samples of the k-th group; see :func:`client_each`."""
    return client_each(pool.groups, "group", n_clients)
