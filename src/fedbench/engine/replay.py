"""A step's kernels on a GPU as one CUDA graph: it is launched once, where its operations are launched one by one.

Networks of many small layers leave a GPU idle while a processor launches: some ten microseconds for each operation, of
which a step of a ResNet20 has more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Run = Callable[..., Sequence[Tensor]]
WARMED_UP = 3
"""Calls before recording, in which libraries choose kernels and take memory."""


def record(run: Run, inputs: Sequence[Tensor]) -> tuple[Callable[[], None], Sequence[Tensor]]:
    """Record what ``run`` does with ``inputs``; return what does it again, and where the results then lie."""
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
    """Computes what ``run`` computes, recorded once, for inputs of the same shapes.

    A recording reads and writes the same memory each time: inputs are copied to where it reads, and results from where
    it writes, so that a caller may keep them.

    Args:
        run: a function of tensors without choices that depend on their values.
        example: inputs like those to come.
        changed: which of them ``run`` changes in place, as it does those of a caller.
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
