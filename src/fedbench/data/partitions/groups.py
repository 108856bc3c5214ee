"""groups: whole groups, or classes where there are none, are dealt to the clients (fcsg: Omniglot's characters)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Shuffle the groups and deal them like cards, with all their samples; clients differ by at most one group."""
    group = pool.classes if pool.groups is None else pool.groups
    names = rng.permutation(np.unique(group))
    if len(names) < n_clients:
        raise UserError(
            f"partition rule 'groups': {len(names)} groups are too few for {n_clients} clients:"
            f" use at most {len(names)}."
        )
    clients = [np.flatnonzero(np.isin(group, names[client::n_clients])) for client in range(n_clients)]
    return Deal(clients, facts={"groups": [len(names[client::n_clients]) for client in range(n_clients)]})
