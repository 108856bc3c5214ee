"""by_site: every site of the data (a hospital, a clinic) is a client."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool, client_each
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give client k all samples of the k-th site; see :func:`client_each`."""
    return client_each(pool.sites, "site", n_clients)
