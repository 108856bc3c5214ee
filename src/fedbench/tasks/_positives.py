"""Mini-batches with additional positives: each client's positives are visited in an order of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import ClientData
from fedbench.data.round_batches import Batch
from fedbench.errors import UserError
from fedbench.net import Net
from fedbench.task import Conditional, Rounds
from fedbench.tasks._nested import Nested

Pair = Callable[[Batch, Batch], Any]
"""(additional positives, mini-batch) -> the batch of a task."""


def members(data: ClientData, client: int) -> np.ndarray:
    """Return the positions of a client's positives among the client's samples, [n]."""
    labels = data.labels[data.offsets[client] : data.offsets[client + 1]]
    return np.flatnonzero(labels.cpu().numpy() == 1)


def check_padding(task: str, data: ClientData, n: int, net: Net) -> None:
    """Refuse batch-norm where a client has fewer than ``n`` positives: padding would enter its statistics."""
    if net.n_buffers and any(len(members(data, client)) < n for client in range(len(data.sizes))):
        raise UserError(
            f"task {task!r}: a client has fewer than {n} positives, and padding would enter batch-norm: take fewer, or "
            "a network without batch-norm"
        )


def rounds(
    data: ClientData, clients: Sequence[int], n: int, round_index: int, purpose: str, pair: Pair
) -> Rounds:
    """Add ``n`` positives of the client, or all if it has fewer, to each mini-batch of a round."""
    work, steps = data.work(clients, round_index, purpose), data.steps(round_index)
    drawn = [_drawn(data, client, n, steps, purpose) for client in clients]
    more = sum(len(batch) for batches in drawn for batch in batches)
    return Nested(
        work, lambda step, batch: pair(_batch(data, clients, n, [own[step] for own in drawn]), batch), more
    )


def first(data: ClientData, clients: Sequence[int], n: int, purpose: str, pair: Pair) -> Rounds:
    """Draw one such batch of each client before its rounds."""
    drawn = [_drawn(data, client, n, [0], purpose)[0] for client in clients]
    positives = _batch(data, clients, n, drawn)
    return Nested(
        data.first(clients, purpose), lambda step, batch: pair(positives, batch), sum(map(len, drawn))
    )


def inside(work: Rounds, n: int) -> Rounds:
    """Nest mini-batches: outer samples are the positives among the first ``n`` samples, inner samples are all."""

    def pair(step: int, batch: Batch) -> Conditional:
        inputs, labels = batch.inputs[:, :n], batch.labels[:, :n]
        chosen = _present(batch)[:, :n] * (labels == 1)
        return Conditional(Batch(inputs, labels, chosen / chosen.sum(1, keepdim=True).clamp(min=1)), batch)

    return Nested(work, pair, 0)


def alike(batch: Batch) -> Batch:
    """Give all samples of a batch [K, B, ...] the same weight, and padding the weight 0."""
    present = _present(batch)
    return batch._replace(weight=present / present.sum(1, keepdim=True))


def together(positives: Batch, ordinary: Batch) -> Batch:
    """Join batches [K, b, ...] and [K, B, ...] into one of [K, b + B, ...], in which all samples weigh the same."""
    return alike(
        Batch(
            torch.cat([positives.inputs, ordinary.inputs], 1),
            torch.cat([positives.labels, ordinary.labels], 1),
            torch.cat([_present(positives), _present(ordinary)], 1),
        )
    )


def _present(batch: Batch) -> Tensor:
    """Return 1 for each sample and 0 for padding, [K, B]."""
    dtype = torch.get_default_dtype()
    if batch.weight is None:
        return torch.ones_like(batch.labels, dtype=dtype)
    return (batch.weight > 0).to(dtype)


def _drawn(data: ClientData, client: int, n: int, steps: Sequence[int], purpose: str) -> list[np.ndarray]:
    positives = members(data, client)
    return data.cycle(client, positives, min(n, len(positives)), steps, f"outer {purpose}")


def _batch(data: ClientData, clients: Sequence[int], n: int, drawn: Sequence[np.ndarray]) -> Batch:
    """Gather positives [K, n]; if a client has fewer, the rest is padding of weight 0."""
    index = np.zeros((len(clients), n), dtype=np.int64)
    share = np.zeros(index.shape)
    for row, (client, positives) in enumerate(zip(clients, drawn, strict=True)):
        index[row, : len(positives)] = positives
        share[row, : len(positives)] = 1 / max(len(positives), 1)
        index[row] += data.offsets[client]
    batch = data.gather(torch.from_numpy(index))
    return batch._replace(weight=torch.from_numpy(share).to(data.device, torch.get_default_dtype()))
