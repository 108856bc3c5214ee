"""dirichlet(delta): every client draws its class prior from Dir(delta) (climb, appendix, which is not public).

The authors' program (shenzebang/Federated-Learning-Pytorch c841a4d, utils/data_utils.py 177-206) draws sample by sample
too, but takes an exhausted label out of the priors of all clients.
"""

from __future__ import annotations

import numpy as np

from fedbench.data.partitions import Deal, Pool, leftover
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec

_UNIFORM = 1e9  # priors are even to four digits from here on; far beyond, their gamma draws would overflow


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Fill one client after the other to floor(n / N) samples, drawing labels from its prior.

    A label that is exhausted leaves the prior, which is renormalised. If nothing of the prior is left (delta
    is small), the client draws a new one over the labels that remain: a Dirichlet restricted to some labels
    is the Dirichlet over them, so this is what the first draw would have been without the exhausted ones.
    Ends for any delta.
    """
    if spec.delta is None:
        raise UserError("partition rule 'dirichlet' needs delta > 0, the concentration of the class priors.")
    shuffled = rng.permutation(len(pool))
    piles = [shuffled[pool.labels[shuffled] == label] for label in np.unique(pool.labels)]
    left = np.array([len(pile) for pile in piles])
    size = len(pool) // n_clients
    delta = min(spec.delta, _UNIFORM)
    clients, remarks = [], []
    for client in range(n_clients):
        taken = np.zeros(len(piles), dtype=np.int64)
        prior = rng.dirichlet(np.full(len(piles), delta))
        while (need := size - int(taken.sum())) > 0:
            prior = np.where(left > taken, prior, 0.0)
            if not prior.sum() > 0:
                open_ = left > taken
                prior[open_] = rng.dirichlet(np.full(int(open_.sum()), delta))
                remarks.append(
                    f"client {client} drew a new prior: the labels of its first one were exhausted"
                )
            draws = rng.choice(len(piles), size=need, p=prior / prior.sum())
            taken += _until_exhausted(draws, left - taken)
        clients.append(
            np.concatenate([pile[n - t : n] for pile, n, t in zip(piles, left, taken, strict=True)])
        )
        left -= taken
    return Deal(clients, (*remarks, *leftover(len(pool) - size * n_clients, n_clients)))


def _until_exhausted(draws: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Count the draws ``[m]`` per label before the first that asks for more than is left of its label."""
    end = len(draws)
    for label in np.flatnonzero(np.bincount(draws, minlength=len(left)) > left):
        end = min(end, int(np.flatnonzero(draws == label)[left[label]]))
    return np.bincount(draws[:end], minlength=len(left))
