"""The contract of a task: its batches, its loss and its metrics; and the other names that a file with a task imports.

from fedbench.task import Batch, LabelledTask, Leaf, Model, Net, Part
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from fedbench.data.clients import Arrays, ClientData
from fedbench.data.inputs import Inputs
from fedbench.data.round_batches import Batch
from fedbench.errors import UserError
from fedbench.net import Leaf, Net, build_network
from fedbench.objectives.mean import batch_mean
from fedbench.random import stream
from fedbench.spec import TrainSpec

__all__ = [
    "Arrays", "Batch", "ClientData", "Conditional", "ConditionalTask", "LabelledTask", "Leaf", "Model", "Net", "Part",
    "Rounds", "Task", "UserError", "batch_mean", "build_network", "stream",
]  # fmt: skip

CHUNK = {"cpu": 96, "cuda": 2000}
"""Samples per forward pass: on a CPU as many as its cache holds, a third faster than 500."""
BLOCK = 16
"""The number of samples of each pass is a multiple of this. Matrix products take several rows at a time (4 for one
output on a processor, up to 16 in the widest registers) and sum the remaining rows in another order: without padding,
equal samples had unequal scores."""


class Rounds(Protocol):
    """The batches of one round of several clients, stacked; :class:`fedbench.data.round_batches.Work` is one.

    Attributes:
        steps: local steps of the client that makes the most.
        samples: number of samples drawn by all clients together.
        unequal: whether some clients have fewer steps.
        steps_of_each: each client's steps, [K].
    """

    steps: int
    samples: int
    unequal: bool
    steps_of_each: Tensor

    def active(self, step: int) -> Tensor:
        """Return which clients still have work at ``step``: [K] of bool."""

    def batch(self, step: int) -> Any:
        """Return the batch of ``step``, an argument of the task's loss."""


@dataclass(frozen=True)
class Part:
    """A part of the data to measure on.

    Attributes:
        name: ``test`` or ``val``.
        inputs: [n, ...] as stored, on the device or, if they do not fit there, in their file; ``Model.outputs`` and
            ``ClientData.prepare`` take both.
        labels: [n] int64.
    """

    name: str
    inputs: Inputs
    labels: np.ndarray


@dataclass(frozen=True)
class Model:
    """A model to measure: a network's parameters ``w`` [d], its running statistics, and the data of its training."""

    net: Net
    w: Tensor
    buffers: Tensor | None
    data: ClientData

    def outputs(self, inputs: Inputs) -> Tensor:
        """Return the evaluation-mode outputs [n, C] for stored inputs [n, ...]; equal samples have equal outputs.

        Raises:
            FloatingPointError: an output is not finite, because the parameters are finite but too large.
        """
        if any(
            isinstance(of, nn.BatchNorm2d) and not of.track_running_stats for of in self.net.module.modules()
        ):
            raise UserError(
                "the network normalises by batches alone (conv4), so that a sample's score depends on those beside "
                "it: take one with running statistics"
            )
        statistics = None if self.buffers is None else self.buffers[None]
        parts = []
        with torch.no_grad():
            for chunk in inputs.split(CHUNK.get(inputs.device.type, 512)):
                prepared = self.data.prepare(chunk)
                padding = prepared.new_zeros(-len(prepared) % BLOCK, *prepared.shape[1:])
                filled = torch.cat([prepared, padding]) if len(padding) else prepared
                scores = self.net.scores(self.w[None], filled[None], statistics, train=False)[0]
                parts.append(scores[: len(prepared)])
        outputs = torch.cat(parts)
        if not bool(torch.isfinite(outputs).all()):
            raise FloatingPointError("scores became non-finite")
        return outputs


class Task:
    """A learning task. A subclass is a frozen dataclass; its fields are its options, with values in the configuration.

    Attributes:
        kind: a description of the task's batches, in words.
        measures: names of all metrics that the task can measure; runs record them as ``test_<name>``. A metric is
            declared in :mod:`fedbench.metric_table`, or under ``measures:`` in a paper's YAML.
        spread: whether each client's own model is also measured, before the last averaging.
    """

    kind: ClassVar[str] = "batches of its own"
    measures: ClassVar[tuple[str, ...]] = ()
    spread: ClassVar[bool] = True

    def outputs(self, arrays: Arrays) -> int:
        """Return how many outputs the network has: one for two classes, else one per class."""
        return 1 if arrays.n_classes == 2 else arrays.n_classes

    def measured(self, n_classes: int, train: TrainSpec) -> tuple[str, ...]:
        """Return the metrics that a run on data of ``n_classes`` classes records, and that a table may show."""
        return self.measures

    def check(self, data: ClientData, arrays: Arrays, net: Net) -> None:
        """Refuse data or a network that do not fit, before anything is trained.

        Raises:
            UserError: the data or the network do not fit; the message says what to change.
        """

    def prior(self, data: ClientData) -> float:
        """Return the share of positives among drawn samples, for min-max losses; nan unless there are two classes."""
        return data.prior

    def rounds(self, data: ClientData, clients: Sequence[int], round_index: int, purpose: str) -> Rounds:
        """Collect the batches of several clients for one round; ``purpose`` names the random stream of the draws."""
        return data.work(clients, round_index, purpose)

    def first(self, data: ClientData, clients: Sequence[int], purpose: str) -> Rounds:
        """Draw one batch of each client before its rounds, as a single step, for methods that start from data."""
        return data.first(clients, purpose)

    def shape(self, data: ClientData, client: int) -> tuple[int, ...]:
        """Return the shape of a client's batches; batches of equal shape are stacked without padding."""
        return data.shape(client)

    def loss(self, net: Net, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's loss [K] on its batch at parameters ``w`` [K, d]; ``buffers`` change in place."""
        raise NotImplementedError

    def measure(self, model: Model, part: Part) -> dict[str, float]:
        """Measure a model on a part of the data: a number for each of ``measures``."""
        raise NotImplementedError

    def scores(self, model: Model, part: Part) -> np.ndarray | None:
        """Return the scores [n, C] of a part's samples, from which its metrics are computed; predictions store them.

        The default, None, says that the metrics are not computed from scores of samples.
        """
        return None


class LabelledTask(Task):
    """A task whose batches are samples with labels (:class:`Batch`); the network gives each sample its scores.

    Methods that compute their loss from scores and labels need such a task.
    """

    kind: ClassVar[str] = "samples with labels"


class Conditional(NamedTuple):
    """A nested draw: b outer samples xi, and m inner samples eta drawn given xi.

    ``outer`` inputs are [K, b, ...]; ``inner`` inputs are [K, b, m, ...], or [K, m, ...] if all xi share them.
    """

    outer: Batch
    inner: Batch


class ConditionalTask(Task):
    """A task ``min_x E_xi f_xi(E_{eta|xi} g_eta(x, xi)) + r(x)`` on nested draws (:class:`Conditional`)."""

    kind: ClassVar[str] = "nested draws"

    def inner_size(self, net: Net) -> int:
        """Return p, the length of an inner value."""
        return 1

    def inner(self, net: Net, w: Tensor | Leaf, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return ``mean_eta g_eta(w, xi)`` for each outer sample: [K, b, p]."""
        raise NotImplementedError

    def outer(self, net: Net, u: Tensor, batch: Conditional, buffers: Tensor | None) -> Tensor:
        """Return ``mean_xi f_xi(u_xi)`` of each client, [K], for inner values ``u`` [K, b, p]."""
        raise NotImplementedError

    def penalty(self, net: Net, w: Tensor | Leaf) -> Tensor | float:
        """Return the regulariser r(w) that is added to each client's loss, [K] or 0."""
        return 0.0

    def loss(self, net: Net, w: Tensor | Leaf, batch: Any, buffers: Tensor | None) -> Tensor:
        """Return each client's plug-in loss [K]: f at the mean over the drawn inner samples, plus the penalty."""
        return self.outer(net, self.inner(net, w, batch, buffers), batch, buffers) + self.penalty(net, w)
