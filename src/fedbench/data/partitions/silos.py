"""silos: positive and negative classes are dealt to the clients, so no class lies in two of them (codasca)."""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Shuffle the positive classes and the negative ones and deal each like cards, with all their samples.

    Clients have equally many positive classes, or one more, and likewise negative ones. The two are shuffled
    independently, or with ``paired`` alike: then the i-th positive class goes where the i-th negative one goes, as in
    the paper's program.
    """
    if not np.isin(pool.labels, (0, 1)).all():
        raise UserError("partition rule 'silos' needs binary labels: set labels.rule to 'halves' or 'named'.")
    # a class some of whose positives are flipped is still a positive one
    positive = np.unique(pool.classes[pool.labels == 1])
    shuffled = [positive, np.setdiff1d(pool.classes, positive)]
    for classes, what in zip(shuffled, ("positive", "negative"), strict=True):
        if len(classes) < n_clients:
            raise UserError(
                f"partition rule 'silos': {len(classes)} {what} classes are too few for {n_clients} clients, each of"
                f" which gets its own: use at most {len(classes)}."
            )
    if spec.paired and len(shuffled[0]) != len(shuffled[1]):
        raise UserError(
            f"partition rule 'silos' cannot pair {len(shuffled[0])} positive with {len(shuffled[1])} negative classes."
        )
    orders = [rng.permutation(len(classes)) for classes in shuffled]
    if spec.paired:
        orders[1] = orders[0]
    dealt = [classes[order] for classes, order in zip(shuffled, orders, strict=True)]
    clients, facts = [], []
    for client in range(n_clients):
        mine = [np.sort(classes[client::n_clients]) for classes in dealt]
        samples = np.flatnonzero(np.isin(pool.classes, np.concatenate(mine)))
        clients.append(samples)
        facts.append(
            {
                "positive_classes": mine[0].tolist(),
                "negative_classes": mine[1].tolist(),
                "positive_ratio": round(float(pool.labels[samples].mean()), 6),
            }
        )
    return Deal(clients, facts={"silos": facts})
