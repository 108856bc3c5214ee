"""The losses, sample by sample, and their gradients."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy

from reference.world import Data, World, flat, named


def without_trace(module: nn.Module) -> dict[str, Tensor]:
    """Copies of the buffers: what a forward pass does to them is lost."""
    return {name: b.clone() for name, b in module.named_buffers()}


def ce_at(module: nn.Module, w: Tensor, data: Data) -> Tensor:
    """Cross-entropy at a flat vector, training mode, no trace in the running statistics."""
    logits = functional_call(module, (named(module, w), without_trace(module)), (data[0],))
    return bce(logits.squeeze(-1), data[1].to(logits.dtype))


def auc_loss(scores: Tensor, y: Tensor, a: Tensor, b: Tensor, alpha: Tensor, p: float) -> Tensor:
    """localscgdam eq. (1), sample by sample."""
    total = scores.new_zeros(())
    for s, label in zip(scores, y, strict=True):
        if label == 1:
            total = total + (1 - p) * (s - a) ** 2 - 2 * (1 + alpha) * (1 - p) * s
        else:
            total = total + p * (s - b) ** 2 + 2 * (1 + alpha) * p * s
    return total / len(y) - p * (1 - p) * alpha**2


def regularised(world: World, gradient: Tensor, w: Tensor) -> Tensor:
    """A gradient in network parameters, cut to the bounds on its norm and entries; weight decay comes after that."""
    if world.clip_norm is not None and gradient.norm() > world.clip_norm:
        gradient = gradient * world.clip_norm / (gradient.norm() + 1e-6)
    gradient = torch.tensor([min(max(g, -world.clip_value), world.clip_value) for g in gradient.tolist()])
    return gradient + world.weight_decay * w


def minimax(
    world: World, module: nn.Module, a: Tensor, b: Tensor, alpha: Tensor, data: Data, score: str, a_b: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of F in w, a, b, alpha; the module's running statistics see the batch."""
    a, b, alpha = (t.clone().requires_grad_() for t in (a, b, alpha))
    logits = module(data[0]).squeeze(-1)
    loss = auc_loss(
        torch.sigmoid(logits) if score == "sigmoid" else logits, data[1], a, b, alpha, world.prior
    )
    loss = loss + 0 * (a + b + alpha)  # a batch of one class leaves a or b out
    grads = torch.autograd.grad(loss, [*module.parameters(), a, b, alpha])
    gradient = torch.cat([g.reshape(-1) for g in grads[:-3]])
    ga, gb, weights = grads[-3], grads[-2], flat(module)
    if a_b == "clip":
        all_of_x = regularised(world, torch.stack([*gradient, ga, gb]), torch.stack([*weights, a, b]))
        return all_of_x[:-2].detach(), all_of_x[-2].detach(), all_of_x[-1].detach(), grads[-1]
    if a_b == "decay":
        ga, gb = ga + world.weight_decay * a.detach(), gb + world.weight_decay * b.detach()
    return regularised(world, gradient, weights), ga, gb, grads[-1]


def dual(g_alpha: Tensor, a: Tensor, b: Tensor, alpha: Tensor, rule: str) -> Tensor:
    return g_alpha if rule == "batch" else 2 * (b - a) - 2 * alpha


def at_least(alpha: Tensor, least: float | None) -> Tensor:
    return alpha if least is None or float(alpha) > least else torch.tensor(least)


def each_ce(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy sample by sample, one logit or several."""
    if outputs.shape[1] == 1:
        return bce(outputs.squeeze(-1), y.to(outputs.dtype), reduction="none")
    return cross_entropy(outputs, y, reduction="none")


def mean_ce(module: nn.Module, x: Tensor, y: Tensor, start: Tensor) -> Tensor:
    return each_ce(module(x), y).mean()


def local_gradient(world: World, module: nn.Module, loss: Tensor) -> Tensor:
    """Gradient of a loss as one vector, clipped, with weight decay."""
    parts = torch.autograd.grad(loss, list(module.parameters()))
    return regularised(world, torch.cat([part.reshape(-1) for part in parts]), flat(module))
