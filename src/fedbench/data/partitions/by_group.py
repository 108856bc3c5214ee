"""by_group: every group of the data (a state, a hospital) is a client (cycp's Insurance: one client a state)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.specs import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give client k all samples of the k-th group that has some; nothing is drawn."""
    if pool.groups is None:
        raise UserError("partition rule 'by_group' needs a dataset that knows the group of each sample.")
    names = np.unique(pool.groups)
    if len(names) != n_clients:
        raise UserError(
            f"partition rule 'by_group' makes a client of each of the {len(names)} groups that have training samples,"
            f" but data.clients is {n_clients}: set it to {len(names)}."
        )
    return Deal([np.flatnonzero(pool.groups == name) for name in names])
