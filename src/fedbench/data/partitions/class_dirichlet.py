"""class_dirichlet(delta): every class deals its samples in shares drawn from Dir(delta) (cycp, section 6)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec

# beyond, shares are one client's or even to four digits, and gamma draws under- or overflow
_BOUNDS = (1e-6, 1e6)


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Cut the shuffled samples of each class by shares q ~ Dir(delta, ..., delta) of the clients.

    Unlike ``dirichlet``, clients differ in size and no sample is left out. A class is an original one, or with
    ``by: labels`` a label as trained on. A client that came out with fewer than ``least`` samples is filled up with
    random samples of the largest clients, one at a time: the paper does not say how it treats empty clients, and
    drawing again until none is would not end for small delta.
    """
    if spec.delta is None:
        raise UserError("partition rule 'class_dirichlet' needs delta > 0, the concentration of the shares.")
    if len(pool) < spec.least * n_clients:
        raise UserError(
            f"{len(pool)} training samples are too few for {n_clients} clients of at least {spec.least}: use fewer"
            " clients, drop less or lower partition.least."
        )
    delta = float(np.clip(spec.delta, *_BOUNDS))
    kinds = pool.classes if spec.by == "classes" else pool.labels
    piles: list[list[np.ndarray]] = [[] for _ in range(n_clients)]
    for kind in np.unique(kinds):
        members = rng.permutation(np.flatnonzero(kinds == kind))
        shares = rng.dirichlet(np.full(n_clients, delta))
        cuts = (np.cumsum(shares)[:-1] * len(members)).round().astype(np.int64)
        for pile, begin, end in zip(piles, [0, *cuts], [*cuts, len(members)], strict=True):
            pile.append(members[begin:end])
    clients = [rng.permutation(np.concatenate(pile)) for pile in piles]
    return _filled_up(clients, spec.least)


def _filled_up(clients: list[np.ndarray], least: int) -> Deal:
    """Move the last samples of the largest clients, whose order is random, to those with fewer than ``least``."""
    sizes = np.array([len(client) for client in clients])
    moved: list[list[int]] = [[] for _ in clients]
    for client in np.flatnonzero(sizes < least):
        while sizes[client] < least:
            donor = int(sizes.argmax())
            sizes[donor] -= 1
            sizes[client] += 1
            moved[client].append(int(clients[donor][sizes[donor]]))
    small = sum(map(bool, moved))
    dealt = [
        np.concatenate([client[:size], np.array(extra, dtype=np.int64)])
        for client, size, extra in zip(clients, sizes, moved, strict=True)
    ]
    told = f"{small} clients had fewer than {least} samples and got {sum(map(len, moved))} from the largest"
    return Deal(dealt, (told,) if small else ())
