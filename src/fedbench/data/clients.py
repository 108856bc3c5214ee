"""Mini-batches of many clients: whole tensors on the device, a batch is an index gather."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedbench.data import augment
from fedbench.data.augment import scaled
from fedbench.data.inputs import Inputs, Mapped, Where, place, size_of, stored
from fedbench.data.round_batches import Batch, Work
from fedbench.data.samplers import Orders
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import TrainSpec

_ROWS = 1 << 14
"""Samples that are copied at a time."""
READY = 1 << 26
"""Numbers of inputs, a quarter of a gigabyte, up to which they are kept as the network sees them."""


@dataclass(frozen=True)
class Arrays:
    """Prepared arrays as one setting sees them; the partition holds each client's positions in ``x_train``.

    Attributes:
        x_train, x_test: inputs, uint8 in [0, 255] or float32.
        y_train, y_test: labels as trained on and tested, int64.
        clients: positions in ``x_train`` of each client's samples.
        validation: positions in ``x_train`` held out from all clients.
        n_classes: number of classes of the labels.
        site_test: [n] int64 site of each test sample, an index into ``sites``, their names; None where there are none.
        site_train: likewise of each sample of ``x_train``.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    clients: Sequence[np.ndarray]
    validation: np.ndarray
    n_classes: int
    site_test: np.ndarray | None = None
    sites: tuple[str, ...] = ()
    site_train: np.ndarray | None = None


def _rows(stored: Inputs, index: Tensor) -> Tensor:
    """Select rows [K, B, ...] at positions [K, B], several times faster than by indexing."""
    return stored.index_select(0, index.flatten()).view(*index.shape, *stored.shape[1:])


def as_seen(shape: Sequence[int], spec: TrainSpec) -> tuple[int, ...]:
    """Return the shape of a stored sample (C, ...) once it is normalised.

    Raises:
        UserError: there is another number of channels than of means.
    """
    if spec.normalize is None or not shape:
        return tuple(shape)
    means = len(spec.normalize.mean)
    if shape[0] not in (1, means):
        raise UserError(
            f"train.normalize has {means} means, but a sample has {shape[0]} channels: give a mean and a std for each,"
            " or take it away (normalize: null)"
        )
    return (means, *shape[1:])


class ClientData(Orders):
    """The clients' training data on a device, in the order in which each client visits it.

    Attributes:
        where: where inputs are, ``device`` or ``host`` (:mod:`fedbench.data.inputs`).
        sample: shape of a sample as the network sees it: a grey image that is normalised as a coloured one has three
            channels.
    """

    def __init__(
        self, arrays: Arrays, spec: TrainSpec, seed: int, device: torch.device, inputs: Where = "auto"
    ) -> None:
        labels = [arrays.y_train[positions] for positions in arrays.clients]
        super().__init__(labels, arrays.n_classes, spec, seed)
        self.device, self.n_classes = device, arrays.n_classes
        used = np.concatenate(arrays.clients)
        held = (arrays.x_train, len(used) + len(arrays.validation)), (arrays.x_test, len(arrays.x_test))
        self.where = place(inputs, size_of(*held), device)
        self.inputs = stored(arrays.x_train, used, device, self.where)
        self.labels = torch.from_numpy(arrays.y_train[used].astype(np.int64)).to(device)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self.sample = as_seen(self.inputs.shape[1:], spec)
        if spec.normalize is not None:
            shape = (1, -1, *[1] * (self.inputs.dim() - 2))
            self._mean = torch.tensor(spec.normalize.mean, device=device).view(shape)
            self._std = torch.tensor(spec.normalize.std, device=device).view(shape)

    @property
    def prior(self) -> float:
        """The share of positives as ``train.prior`` says, from two integers per client; nan unless binary.

        That of the data, or where ``train.positives`` is a share that of the batches. Where clients weigh by their
        samples, their mean is the share of all samples.
        """
        if self.n_classes != 2:
            return float("nan")
        pooled = self.spec.prior == "pooled" or self.spec.weights == "samples"
        if self.pairs is not None and self.pairs.alike:
            counts = np.array([self.pairs.counts(client) for client in range(len(self.sizes))])
            weights = self.sizes if pooled else None
            return float(np.average(counts[:, 0] / counts.sum(1), weights=weights))
        positive = (self.labels == 1).double()
        if pooled:
            return float(positive.mean())
        return float(torch.stack([part.mean() for part in torch.split(positive, self.sizes)]).mean())

    @property
    def weights(self) -> Tensor | None:
        """Each client's share of an average as ``train.weights`` says, [N]; None where all have the same."""
        if self.spec.weights == "equal" or len({*self.sizes}) == 1:
            return None
        sizes = torch.tensor(self.sizes, dtype=torch.float64, device=self.device)
        return sizes / sizes.sum()

    @functools.cached_property
    def class_counts(self) -> Tensor:
        """How many training samples of each class each client has, [N, C]."""
        parts = torch.split(self.labels, self.sizes)
        return torch.stack([torch.bincount(part, minlength=self.n_classes) for part in parts])

    def epoch_batches(self) -> Tensor:
        """Return how many mini-batches an epoch of each client has, [N], an incomplete last one too if used."""
        sizes = np.array(self.sizes)
        batch_sizes = np.array([self.batch_size(client) for client in range(len(sizes))])
        batches = sizes // batch_sizes if self.spec.local_epochs is None else -(-sizes // batch_sizes)
        return torch.tensor(np.maximum(batches, 1), device=self.device)

    def work(self, clients: Sequence[int], round_index: int, purpose: str) -> Work:
        """Collect the batches of several clients for one round, padded to equal shape where they differ."""
        plans = [self.plan(client, round_index, purpose) for client in clients]
        return Work(self, plans, list(clients), round_index, purpose, changed=True)

    def first(self, clients: Sequence[int], purpose: str) -> Work:
        """Draw one mini-batch of each client apart from its rounds, not augmented, without noise, padded likewise."""
        plans = [[self._first(client, purpose)] for client in clients]
        return Work(self, plans, list(clients), 0, purpose, changed=False)

    def draw(self, client: int, n: int, purpose: str = "draw", time: int = 0) -> Batch:
        """Draw up to ``n`` of a client's samples without replacement, untouched by augmentation: shapes [1, n, ...]."""
        chosen = self._drawn(client, n, purpose, time)
        return self.gather(torch.from_numpy(chosen + self.offsets[client])[None])

    def passes(self, most: int, time: int | None = None) -> Iterator[Batch]:
        """Yield all clients' samples in their order, up to ``most`` at a time, [1, n, ...] each.

        With a ``time`` they are augmented as in training: each client draws anew at each time.
        """
        if time is None or (self.spec.augment == "none" and self.spec.noise is None):
            parts = self.inputs.split(most), torch.split(self.labels, most)
            for inputs, labels in zip(*parts, strict=True):
                yield Batch(self.prepare(inputs)[None], labels[None])
            return
        apply = getattr(augment, self.spec.augment, lambda inputs, _: scaled(inputs))
        for client, size in enumerate(self.sizes):
            rng, noise = (stream(self.seed, f"{what} losses", client, time) for what in ("augment", "noise"))
            for places in torch.split(torch.arange(size) + self.offsets[client], most):
                index = places[None].to(self.device)
                changed = self.noisy(self.normalize(apply(self.samples(index)[0], rng)), client, noise)
                yield Batch(changed[None], self.labels[index])

    def noisy(self, inputs: Tensor, client: int, rng: np.random.Generator) -> Tensor:
        """Add the noise that a client's training sees, if any, to normalised inputs [n, ...]."""
        if (noise := self.spec.noise) is None:
            return inputs
        drawn = noise.std * rng.standard_normal(inputs.shape, dtype=np.float32) + noise.shift * (
            client - noise.centre
        )
        return inputs + torch.from_numpy(drawn).to(inputs)

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
        return Batch(self.prepared(index), self.labels[index])

    def samples(self, index: Tensor) -> Tensor:
        """Return the stored inputs [K, B, ...] at positions [K, B]."""
        return _rows(self.inputs, index)

    def prepared(self, index: Tensor) -> Tensor:
        """Return the inputs [K, B, ...] at positions [K, B] as the network sees them."""
        if self._ready is not None:
            return _rows(self._ready, index)
        return self.prepare(self.samples(index))

    @functools.cached_property
    def _ready(self) -> Tensor | None:
        """All inputs as the network sees them, None where they are too large to keep, or are augmented first.

        Every sample is seen in every epoch: to prepare it each time takes longer than to read four times as much.
        """
        if isinstance(self.inputs, Mapped):
            return None
        if self.inputs.dtype != torch.uint8 and self.spec.normalize is None:
            return self.inputs
        if self.spec.augment != "none" or len(self.labels) * math.prod(self.sample) > READY:
            return None
        return torch.cat([self.prepare(part) for part in torch.split(self.inputs, _ROWS)])

    def prepare(self, inputs: Inputs) -> Tensor:
        """Turn stored inputs [..., C, H, W] into the network's: float32 in [0, 1], then normalised if asked for."""
        return self.normalize(scaled(inputs.all() if isinstance(inputs, Mapped) else inputs))

    def normalize(self, inputs: Tensor) -> Tensor:
        """Subtract the mean of each channel and divide by its standard deviation, if asked for."""
        return inputs if self.spec.normalize is None else (inputs - self._mean) / self._std
