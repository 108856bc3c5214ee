"""by_site: every site of the data (a hospital, a clinic) is a client."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.specs import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give client k all samples of the k-th site that has some; nothing is drawn."""
    if pool.sites is None:
        raise UserError("partition rule 'by_site' needs a dataset that knows the site of each sample.")
    names = np.unique(pool.sites)
    if len(names) != n_clients:
        raise UserError(
            f"partition rule 'by_site' makes a client of each of the {len(names)} sites that have training samples,"
            f" but data.clients is {n_clients}: set it to {len(names)}."
        )
    return Deal([np.flatnonzero(pool.sites == name) for name in names])
