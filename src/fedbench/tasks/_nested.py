"""The nested batches of a round: outer samples, and inner samples drawn for each outer sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedbench.data.clients import ClientData
from fedbench.data.round_batches import Batch
from fedbench.errors import UserError
from fedbench.task import Conditional, Rounds


class Nested:
    """The nested batches of a round, made from ordinary mini-batches.

    Args:
        work: ordinary mini-batches.
        pair: (step, mini-batch) -> the nested batch.
        more: number of samples that ``pair`` draws in the round, of all clients together.
    """

    def __init__(self, work: Rounds, pair: Callable[[int, Batch], Conditional], more: int) -> None:
        self._work, self._pair = work, pair
        self.steps, self.unequal, self.steps_of_each = work.steps, work.unequal, work.steps_of_each
        self.samples = work.samples + more

    def active(self, step: int) -> Tensor:
        """Return which clients still have work at ``step``: [K] of bool."""
        return self._work.active(step)

    def batch(self, step: int) -> Conditional:
        """Return the nested batch of ``step``."""
        return self._pair(step, self._work.batch(step))


class Drawn:
    """Nested batches that were drawn beforehand.

    Args:
        batches: the batch of each step.
        clients: number of stacked clients, K.
        samples: number of samples that all clients together have drawn.
        device: where ``steps_of_each`` is.
    """

    unequal = False

    def __init__(
        self, batches: Sequence[Conditional], clients: int, samples: int, device: torch.device
    ) -> None:
        self._batches, self.steps, self.samples = batches, len(batches), samples
        self.steps_of_each = torch.full((clients,), self.steps, device=device)

    def active(self, step: int) -> Tensor:
        """Return which clients have work at ``step``, which are all or none: [K] of bool."""
        return self.steps_of_each > step

    def batch(self, step: int) -> Conditional:
        """Return the nested batch of ``step``."""
        return self._batches[step]


def need_period(task: str, data: ClientData) -> None:
    """Refuse local epochs, since nested draws have no epochs.

    Raises:
        UserError: the run has ``local_epochs``.
    """
    if data.spec.period is None:
        raise UserError(
            f"task {task!r} draws nested samples step by step: give train.period, not local_epochs"
        )


def at_least(task: str, option: str, value: float, least: float, above: bool = False) -> None:
    """Refuse an option that is too small.

    Raises:
        UserError: ``value`` is below ``least``, or equals ``least`` and has to be ``above``.
    """
    if value < least or (above and value == least):
        raise UserError(
            f"task {task!r}: {option} is {value}, but has to be {'above' if above else 'at least'} {least}"
        )
