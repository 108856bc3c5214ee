"""Max-pooling in compiled steps on a processor: PyTorch's own kernels, as operations that the compiler leaves alone.

Inductor's own code goes number by number and computes each maximum twice, forward and backward: a compiled step
of a small convolutional network took 1.2 times as long as an uncompiled one.
"""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten
_library: Any = torch.library.Library("fedbench", "DEF")  # type: ignore[no-untyped-call]
_library.define(
    "max_pool2d(Tensor x, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,"
    " bool ceil_mode=False) -> (Tensor, Tensor)"
)
_library.define(
    "max_pool2d_backward(Tensor gradient, Tensor x, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation,"
    " bool ceil_mode, Tensor indices) -> Tensor"
)
_ours = {}
for _name, _theirs in (
    ("max_pool2d", _aten.max_pool2d_with_indices.default),
    ("max_pool2d_backward", _aten.max_pool2d_with_indices_backward.default),
):
    _library.impl(_name, _theirs, "CompositeExplicitAutograd")
    _ours[_theirs] = getattr(torch.ops.fedbench, _name).default


def keep(graph: torch.fx.GraphModule) -> None:
    """Let a traced graph call PyTorch's kernels for its max-pooling layers and their gradients."""
    for node in graph.graph.nodes:
        if node.op == "call_function":
            node.target = _ours.get(node.target, node.target)
    graph.recompile()
