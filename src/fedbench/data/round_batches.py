"""The mini-batches of one round of several clients, stacked."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbench.data import augment
from fedbench.data.inputs import Coming, Mapped
from fedbench.random import stream

if TYPE_CHECKING:
    from fedbench.data.clients import ClientData

AHEAD = {"cpu": 2**17, "cuda": 2**24}
"""Numbers of inputs that are made ready in one call: on a CPU half a megabyte, which stays in a core's
cache until it is used."""


class Batch(NamedTuple):
    """A mini-batch of K clients: inputs [K, B, ...], labels [K, B], each sample's share of the mean [K, B] or None."""

    inputs: Tensor
    labels: Tensor
    weight: Tensor | None = None


class Work:
    """One round of several clients: ``steps`` batches each, some padded, some clients finished earlier."""

    def __init__(
        self, data: ClientData, plans: list[list[np.ndarray]], clients: list[int], round_index: int, purpose: str,
        changed: bool,
    ) -> None:  # fmt: skip
        self._data, self._clients, self._round, self._purpose = data, clients, round_index, purpose
        self._changed, self._augmentation = changed, data.spec.augment if changed else "none"
        steps = max(len(plan) for plan in plans)
        width = max(len(batch) for plan in plans for batch in plan)
        index = np.zeros((steps, len(clients), width), dtype=np.int64)
        counts = np.zeros((steps, len(clients)), dtype=np.int64)
        for row, (client, plan) in enumerate(zip(clients, plans, strict=True)):
            sizes = np.array([len(batch) for batch in plan])
            # pads, with a share of 0
            filled = np.array([batch[0] for batch in plan])[:, None].repeat(width, 1)
            filled[np.arange(width) < sizes[:, None]] = np.concatenate(plan)
            index[: len(plan), row] = filled + data.offsets[client]
            counts[: len(plan), row] = sizes
        self.steps, self.samples = steps, int(counts.sum())
        self.unequal = not counts.all()
        self._counts, widths = counts, counts.max(axis=1)
        self._widths = widths.tolist()
        padded = (counts < widths[:, None]).any(axis=1)
        self._weighted = (padded | (data.pairs is not None and not data.pairs.alike)).tolist()
        self._places = index
        self._index = torch.from_numpy(index).to(data.device)
        self._labels = data.labels[self._index]
        self._labels_of_step = self._labels.unbind()
        numbers_of_step = len(clients) * width * math.prod(data.inputs.shape[1:])
        self._ahead = max(1, AHEAD.get(data.device.type, AHEAD["cuda"]) // numbers_of_step)
        self._begun, self._ready = -1, tuple[Tensor, ...]()
        self._coming: tuple[int, Coming] | None = None
        self._active = torch.from_numpy(counts > 0).to(data.device)
        self.steps_of_each = self._active.sum(0)  # [K]

    @functools.cached_property
    def _shares(self) -> Tensor:
        """Each sample's share of its client's mean, 0 for padding: [steps, K, B]."""
        valid = np.arange(self._index.shape[2]) < self._counts[:, :, None]
        pairs = self._data.pairs
        if pairs is None:
            shares = valid / self._counts.clip(1)[:, :, None]
        else:
            of_label = np.array([pairs.shares(client) for client in self._clients])
            shares = valid * of_label[np.arange(len(of_label))[:, None], self._labels.cpu().numpy()]
        return torch.from_numpy(shares.astype(np.float32)).to(self._data.device)

    def active(self, step: int) -> Tensor:
        """Return which clients still have work at ``step``: [K] of bool."""
        return self._active[step]

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``; ``weight`` is None where all samples of all clients weigh the same."""
        data, width = self._data, self._widths[step]
        labels, inputs = self._labels_of_step[step], self._inputs(step)
        if width < labels.shape[1]:
            labels, inputs = labels[:, :width], inputs[:, :width].contiguous()
        weight = self._shares[step, :, :width] if self._weighted[step] else None
        if self._augmentation != "none":
            apply = getattr(augment, self._augmentation)
            parts = [
                apply(part, self._stream("augment", client, step))
                for client, part in zip(self._clients, inputs, strict=True)
            ]
            stacked = parts[0][None] if len(parts) == 1 else torch.stack(parts)
            # last: what augmentation pads with is black, as in the authors' programs, not the mean colour
            inputs = data.normalize(stacked)
        if self._changed and data.spec.noise is not None:
            parts = [
                data.noisy(part, client, self._stream("noise", client, step))
                for client, part in zip(self._clients, inputs, strict=True)
            ]
            inputs = torch.stack(parts)
        return Batch(inputs, labels, weight)

    def _stream(self, what: str, client: int, step: int) -> np.random.Generator:
        return stream(self._data.seed, f"{what} {self._purpose}", client, self._round, step)

    def _inputs(self, step: int) -> Tensor:
        """Return the inputs of ``step``, [K, B, ...]: as stored if they are augmented, else ready for the network.

        Those of some steps are gathered in one call.
        """
        begin = step - step % self._ahead
        if begin != self._begun:
            self._begun, self._ready = begin, self._gathered(begin).unbind()
        return self._ready[step - begin]

    def _gathered(self, begin: int) -> Tensor:
        data, plain = self._data, self._augmentation == "none"
        if isinstance(data.inputs, Mapped):
            samples = self._read(data.inputs, begin)
            return data.prepare(samples) if plain else samples
        index = self._index[begin : begin + self._ahead]
        return data.prepared(index) if plain else data.samples(index)

    def _read(self, inputs: Mapped, begin: int) -> Tensor:
        """Return stored inputs from the file, [steps, K, B, ...], and begin to read those after them."""

        def coming(at: int) -> Coming:
            return inputs.coming(self._places[at : at + self._ahead])

        known, end = self._coming, begin + self._ahead
        now = known[1] if known is not None and known[0] == begin else coming(begin)
        self._coming = (end, coming(end)) if end < self.steps else None
        return now()
