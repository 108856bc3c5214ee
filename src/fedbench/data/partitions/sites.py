"""sites: a client has samples of one hospital alone, and whole patients (codasca, section 6.1)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give every site clients in proportion to its samples, at least one, and deal its patients to them.

    Patients come in random order, each to the client of its site that has the fewest samples then. Without known
    patients each sample counts as one.
    """
    if pool.sites is None:
        raise UserError(
            "partition rule 'sites' needs a dataset that knows the site of each sample, or several datasets,"
            " named in data.sources."
        )
    names, sizes = np.unique(pool.sites, return_counts=True)
    if n_clients < len(names):
        raise UserError(
            f"partition rule 'sites': {n_clients} clients are fewer than the {len(names)} sites; each needs"
            f" one: set data.clients to {len(names)} or more."
        )
    shares = apportioned(sizes, n_clients)
    clients: list[np.ndarray] = []
    for name, share in zip(names, shares, strict=True):
        members = np.flatnonzero(pool.sites == name)
        groups = members if pool.groups is None else pool.groups[members]
        clients += _dealt(members, groups, int(share), rng)
    told = {str(name): int(share) for name, share in zip(names, shares, strict=True)}
    return Deal(clients, facts={"clients_of_sites": told})


def apportioned(sizes: np.ndarray, seats: int) -> np.ndarray:
    """Divide ``seats`` in proportion to ``sizes`` by largest remainders, at least one each."""
    quotas = sizes / sizes.sum() * seats
    shares: np.ndarray = np.maximum(1, np.floor(quotas).astype(np.int64))
    while shares.sum() > seats:  # the small took more than their part
        shares[np.where(shares > 1, shares - quotas, -np.inf).argmax()] -= 1
    for place in np.argsort(shares - quotas, kind="stable")[: seats - shares.sum()]:
        shares[place] += 1
    return shares


def _dealt(
    members: np.ndarray, groups: np.ndarray, n_clients: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Deal the samples at positions ``members`` ``[m]``, whole groups to each client."""
    names, number, counts = np.unique(groups, return_inverse=True, return_counts=True)
    held = np.zeros(n_clients, dtype=np.int64)
    owner = np.zeros(len(names), dtype=np.int64)
    for group in rng.permutation(len(names)):
        owner[group] = held.argmin()
        held[owner[group]] += counts[group]
    return [members[owner[number] == client] for client in range(n_clients)]
