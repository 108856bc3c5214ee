"""A step's kernels on a GPU as one CUDA graph, launched at once instead of operation by operation.

Networks of many small layers leave a GPU idle while the processor launches operations: each launch takes some ten
microseconds, and a step of a ResNet20 has more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Run = Callable[..., Sequence[Tensor]]
WARMED_UP = 3
"""Calls before recording, in which libraries choose kernels and take memory."""


def record(run: Run, inputs: Sequence[Tensor]) -> tuple[Callable[[], None], Sequence[Tensor]]:
    """Record the operations of ``run`` on ``inputs``; return the recording and the tensors of its results."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARMED_UP):
            run(*inputs)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = run(*inputs)
    return graph.replay, outputs


class Replay:
    """Repeats the operations of ``run``, recorded once, for inputs of the same shapes.

    A recording reads and writes the same memory each time. Inputs are copied into that memory and results out of it,
    so that a caller may keep them.

    Args:
        run: a function of tensors without choices that depend on their values.
        example: inputs like those to come.
        changed: the inputs that ``run`` changes in place; those of the caller are changed, too.
    """

    def __init__(self, run: Run, example: Sequence[Tensor], changed: Sequence[int]) -> None:
        self._inputs = [tensor.clone() for tensor in example]
        self._changed = changed
        self._again, self._outputs = record(run, self._inputs)

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        """Compute the results."""
        for place, tensor in zip(self._inputs, inputs, strict=True):
            place.copy_(tensor)
        self._again()
        for at in self._changed:
            inputs[at].copy_(self._inputs[at])
        return [output.clone() for output in self._outputs]
