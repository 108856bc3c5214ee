"""The methods once more, as plain as can be: one client after the other, one nn.Module, loops, no flat vectors.

Written from the papers' equations, not from ``fedbench.algorithms``; slow, and only for networks of a few hundred
parameters. Everything that a method must not invent (batches, initial weights, the share of positives) comes in.
"""

from collections.abc import Callable

from torch import Tensor

from reference import averaging, control, minimax, momentum, pairs, weighted
from reference.world import Data, World, set_flat

__all__ = ["Data", "World", "method", "set_flat"]
MODULES = (averaging, control, minimax, momentum, pairs, weighted)


def method(name: str) -> Callable[..., dict[str, Tensor]]:
    """Return what trains the method of a file in ``fedbench.algorithms``: (world, hyper-parameters) -> its tensors."""
    function: Callable[..., dict[str, Tensor]] = next(
        vars(each)[name] for each in MODULES if name in vars(each)
    )
    return function
