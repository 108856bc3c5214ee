"""mix(alpha): a share alpha of i.i.d. samples, the rest sorted by label (climb, section 5; the authors' program)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fedbench.data.partitions import Deal, Pool, leftover
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec


def partition(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
    """Give every client one i.i.d. chunk and one chunk of the samples sorted by label.

    The first floor(alpha n) shuffled samples, rounded down to a multiple of N, make N equal i.i.d. chunks;
    the others are sorted by label and cut into N contiguous equal chunks. alpha = 0: mostly clients of one
    class; alpha = 1: i.i.d. Samples that do not divide evenly are left out: with ``remainder: random`` any of
    those that are sorted, as in the authors' program; else the last of them, all of one class.
    """
    if spec.alpha is None:
        raise UserError("partition rule 'mix' needs alpha, the share of i.i.d. samples, from 0 to 1.")
    shuffled = rng.permutation(len(pool))
    mixed = int(Fraction(str(spec.alpha)) * len(pool)) // n_clients
    iid, rest = np.split(shuffled, [mixed * n_clients])
    chunk = len(rest) // n_clients
    sorted_too = rest[: chunk * n_clients] if spec.remainder == "random" else rest
    ordered = sorted_too[np.argsort(pool.labels[sorted_too], kind="stable")]
    clients = [
        np.concatenate([iid[k * mixed : (k + 1) * mixed], ordered[k * chunk : (k + 1) * chunk]])
        for k in range(n_clients)
    ]
    return Deal(clients, leftover(len(rest) - chunk * n_clients, n_clients))
