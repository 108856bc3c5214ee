"""Chain rule of the compositional AUC loss (localscgdam section 4; Yuan et al., ICLR 2022).

Inner map ``g(x) = (w - rho grad CE(w), a, b)``: one gradient step on cross-entropy. For the outer gradient
``q = grad_z f(h, alpha)`` the chain rule gives ``(q_w - rho H q_w, q_a, q_b)`` with H the Hessian of the cross-entropy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor

from fedbench.net import Leaf, Net
from fedbench.net.twice import Twice

HVP = ("exact", "first_order", "finite_difference")


class InnerStep:
    """One gradient step on the inner loss, and products of its Jacobian with a vector.

    Args:
        net: the network whose parameters are meant.
        loss: maps parameters [K, d] (as a leaf) to inner losses [K].
        w: parameters [K, d].
        rho: inner step size.
        hvp: the product of the Hessian and a vector: ``exact`` (double backward), ``first_order`` (drops the Hessian)
            or ``finite_difference`` (central differences of the gradient, for networks without double backward).
        probe: the loss for finite differences, which must leave running statistics unchanged; default: ``loss``.

    Attributes:
        adapted: ``w - rho grad loss(w)``, [K, d].
        loss: inner losses at ``w``, [K].
    """

    def __init__(
        self,
        net: Net,
        loss: Callable[[Leaf], Tensor],
        w: Tensor,
        rho: float,
        hvp: str,
        probe: Callable[[Leaf], Tensor] | None = None,
    ) -> None:
        self._net, self._w, self._rho, self._hvp = net, w.detach(), rho, hvp
        self._probe = probe or loss
        self._leaf = net.leaf(w)
        # Twice is faster for one client on a CPU; stacked clients and GPUs have other kernels
        twice = hvp == "exact" and rho != 0 and not self._leaf.stacked and w.device.type == "cpu"
        with Twice() if twice and not net.rounding else contextlib.nullcontext():
            losses = loss(self._leaf)
        (self._gradient,) = self._leaf.gradient(losses, create_graph=hvp == "exact" and rho != 0)
        self.loss = losses.detach()
        self.adapted = w - rho * self._gradient.detach()

    def jacobian_transposed(self, q: Tensor) -> Tensor:
        """Return ``q - rho H q``, [K, d]."""
        if self._hvp == "first_order" or self._rho == 0:
            return q
        if self._hvp == "exact":
            (product,) = self._leaf.gradient((self._gradient * q).sum(1))
        else:
            product = self._difference(q)
        moved: Tensor = q - self._rho * product
        return moved

    def _difference(self, q: Tensor) -> Tensor:
        length = q.norm(dim=1, keepdim=True).clamp(min=torch.finfo(q.dtype).tiny)
        shift = 1e-2 * q / length
        ends = []
        for sign in (1, -1):
            leaf = self._net.leaf(self._w + sign * shift)
            ends.append(leaf.gradient(self._probe(leaf))[0])
        product: Tensor = (ends[0] - ends[1]) / 2e-2 * length
        return product
