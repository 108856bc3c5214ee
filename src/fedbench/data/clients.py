"""Mini-batches of many clients: whole tensors on the device, a batch is an index gather."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedbench.data import augment
from fedbench.engine.problem import Batch
from fedbench.engine.streams import stream
from fedbench.errors import UserError
from fedbench.specs import TrainSpec


@dataclass(frozen=True)
class Arrays:
    """Prepared arrays as one setting sees them; the partition holds each client's positions in ``x_train``.

    Attributes:
        x_train, x_test: inputs, uint8 in [0, 255] or float32.
        y_train, y_test: labels as trained on and tested, int64.
        clients: positions in ``x_train`` of each client's samples.
        validation: positions in ``x_train`` held out from all clients.
        n_classes: number of classes of the labels.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    clients: Sequence[np.ndarray]
    validation: np.ndarray
    n_classes: int


class ClientData:
    """The clients' training data on a device, and the order in which each client visits it.

    Batches depend on (seed, purpose, client, epoch) alone, so every method of a setting sees the same ones.
    """

    def __init__(self, arrays: Arrays, spec: TrainSpec, seed: int, device: torch.device) -> None:
        for client, positions in enumerate(arrays.clients):
            if len(positions) == 0:
                raise UserError(
                    f"client {client} has no training samples; use fewer clients or a milder partition"
                )
        self.spec, self.seed, self.device = spec, seed, device
        self.sizes = [len(positions) for positions in arrays.clients]
        self.n_classes = arrays.n_classes
        used = np.concatenate(arrays.clients)
        self.inputs = torch.from_numpy(arrays.x_train[used]).to(device)
        self.labels = torch.from_numpy(arrays.y_train[used].astype(np.int64)).to(device)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self._orders: dict[tuple[str, int], tuple[int, np.ndarray]] = {}
        self._scale = torch.tensor(1 / 255, device=device)
        if spec.normalize is not None:
            shape = (1, -1, *[1] * (self.inputs.dim() - 2))
            self._mean = torch.tensor(spec.normalize.mean, device=device).view(shape)
            self._std = torch.tensor(spec.normalize.std, device=device).view(shape)

    @property
    def prior(self) -> float:
        """The global share of positives, from two integers per client; nan unless the task is binary."""
        return float((self.labels == 1).double().mean()) if self.n_classes == 2 else float("nan")

    def batch_size(self, client: int) -> int:
        """The client's mini-batch size: never more than it has samples."""
        size = self.sizes[client]
        if self.spec.batches_per_epoch is not None:
            return max(1, size // self.spec.batches_per_epoch)
        assert self.spec.batch_size is not None
        return min(self.spec.batch_size, size)

    def plan(self, client: int, round_index: int, purpose: str = "batches") -> list[np.ndarray]:
        """Return the positions (in the client's own samples) of each batch of its round.

        With a period, a client walks through one endless stream of reshuffled epochs, incomplete batches dropped. With
        local epochs, each round reshuffles and keeps the incomplete last batch.
        """
        size = self.batch_size(client)
        if self.spec.local_epochs is not None:
            orders = [
                stream(self.seed, purpose, client, round_index * self.spec.local_epochs + epoch).permutation(
                    self.sizes[client]
                )
                for epoch in range(self.spec.local_epochs)
            ]
            return [order[at : at + size] for order in orders for at in range(0, len(order), size)]
        assert self.spec.period is not None
        per_epoch = self.sizes[client] // size
        batches = []
        for step in range(round_index * self.spec.period, (round_index + 1) * self.spec.period):
            epoch, index = divmod(step, per_epoch)
            batches.append(self._order(purpose, client, epoch)[index * size : (index + 1) * size])
        return batches

    def _order(self, purpose: str, client: int, epoch: int) -> np.ndarray:
        known = self._orders.get((purpose, client))
        if known is None or known[0] != epoch:
            known = (epoch, stream(self.seed, purpose, client, epoch).permutation(self.sizes[client]))
            self._orders[purpose, client] = known
        return known[1]

    def work(self, clients: Sequence[int], round_index: int, purpose: str) -> Work:
        """Collect the batches of several clients for one round, padded to equal shape where they differ."""
        plans = [self.plan(client, round_index, purpose) for client in clients]
        return Work(self, plans, list(clients), round_index, purpose, self.spec.augment)

    def first(self, clients: Sequence[int], purpose: str) -> Batch:
        """Draw one mini-batch of each client apart from its rounds, untouched by augmentation, padded likewise."""
        plans = [[self._drawn(client, self.batch_size(client), purpose, 0)] for client in clients]
        return Work(self, plans, list(clients), 0, purpose, "none").batch(0)

    def shape(self, client: int) -> tuple[int, ...]:
        """What clients have in common whose batches can be stacked without padding."""
        local = self.spec.local_epochs is not None
        return (self.batch_size(client), *([self.sizes[client]] if local else []))

    def draw(self, client: int, n: int, purpose: str = "draw", time: int = 0) -> Batch:
        """Draw up to ``n`` of a client's samples without replacement, untouched by augmentation: shapes [1, n, ...]."""
        chosen = self._drawn(client, n, purpose, time)
        return self.gather(torch.from_numpy(chosen + self.offsets[client])[None])

    def _drawn(self, client: int, n: int, purpose: str, time: int) -> np.ndarray:
        return np.sort(stream(self.seed, purpose, client, time).permutation(self.sizes[client])[:n])

    def auxiliary(self, n: int) -> list[Batch]:
        """Draw, once per run, up to ``n`` training samples of each class for the server, in class order."""
        labels = self.labels.cpu().numpy()
        rng = stream(self.seed, "auxiliary")
        batches = []
        for label in range(self.n_classes):
            members = np.flatnonzero(labels == label)
            if len(members) == 0:
                raise UserError(
                    f"no client has a sample of class {label}: the server cannot hold auxiliary samples of it"
                )
            batches.append(self.gather(torch.from_numpy(rng.permutation(members)[:n])[None]))
        return batches

    def gather(self, index: Tensor) -> Batch:
        """Gather samples by position: [K, B] -> inputs [K, B, ...] and labels [K, B]."""
        index = index.to(self.device)
        return Batch(self.prepare(self.samples(index)), self.labels[index])

    def samples(self, index: Tensor) -> Tensor:
        """Return the stored inputs [K, B, ...] at positions [K, B]."""
        # selecting rows is several times faster than indexing
        return self.inputs.index_select(0, index.flatten()).view(*index.shape, *self.inputs.shape[1:])

    def prepare(self, inputs: Tensor) -> Tensor:
        """Turn stored inputs [..., C, H, W] into the network's: float32 in [0, 1], then normalised if asked for."""
        return self.normalize(self.scale(inputs))

    def scale(self, inputs: Tensor) -> Tensor:
        """Turn images stored as whole numbers into float32 in [0, 1]; leave others as they are."""
        return inputs * self._scale if inputs.dtype == torch.uint8 else inputs

    def normalize(self, inputs: Tensor) -> Tensor:
        """Subtract the mean of each channel and divide by its standard deviation, if asked for."""
        return inputs if self.spec.normalize is None else (inputs - self._mean) / self._std


class Work:
    """One round of several clients: ``steps`` batches each, some padded, some clients finished earlier."""

    def __init__(
        self, data: ClientData, plans: list[list[np.ndarray]], clients: list[int], round_index: int, purpose: str,
        augmentation: str,
    ) -> None:  # fmt: skip
        self._data, self._clients, self._round, self._purpose = data, clients, round_index, purpose
        self._augmentation = augmentation
        steps = max(len(plan) for plan in plans)
        width = max(len(batch) for plan in plans for batch in plan)
        index = np.zeros((steps, len(clients), width), dtype=np.int64)
        counts = np.zeros((steps, len(clients)), dtype=np.int64)
        for row, (client, plan) in enumerate(zip(clients, plans, strict=True)):
            for step, batch in enumerate(plan):
                index[step, row] = batch[0]  # pads a short batch, with a share of 0
                index[step, row, : len(batch)] = batch
                counts[step, row] = len(batch)
            index[: len(plan), row] += data.offsets[client]
        self.steps, self.samples = steps, int(counts.sum())
        self.unequal = not counts.all()
        self._counts, widths = counts, counts.max(axis=1)
        self._widths = widths.tolist()
        self._padded = (counts < widths[:, None]).any(axis=1).tolist()
        self._index = torch.from_numpy(index).to(data.device)
        self._labels = data.labels[self._index]
        self._active = torch.from_numpy(counts > 0).to(data.device)
        self.steps_of_each = self._active.sum(0)  # [K]

    @functools.cached_property
    def _shares(self) -> Tensor:
        """Each sample's share of its client's mean, 0 for padding: [steps, K, B]."""
        valid = np.arange(self._index.shape[2]) < self._counts[:, :, None]
        shares = valid / self._counts.clip(1)[:, :, None]
        return torch.from_numpy(shares.astype(np.float32)).to(self._data.device)

    def active(self, step: int) -> Tensor:
        """Return which clients still have work at ``step``: [K] of bool."""
        return self._active[step]

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``; ``weight`` is None where all clients' batches are of one size."""
        data, width = self._data, self._widths[step]
        index, labels = self._index[step, :, :width], self._labels[step, :, :width]
        weight = self._shares[step, :, :width] if self._padded[step] else None
        inputs = data.scale(data.samples(index))
        if self._augmentation != "none":
            apply = getattr(augment, self._augmentation)
            parts = [
                apply(part, stream(data.seed, f"augment {self._purpose}", client, self._round, step))
                for client, part in zip(self._clients, inputs, strict=True)
            ]
            inputs = torch.stack(parts)
        # last: what augmentation pads with is black, as in the official programs, not the mean colour
        return Batch(data.normalize(inputs), labels, weight)
