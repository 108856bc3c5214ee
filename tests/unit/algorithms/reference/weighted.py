"""Methods that weight classes or clients."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from reference.averaging import fedavg
from reference.losses import each_ce
from reference.world import World


def class_weights(world: World, server: nn.Module, ratio_alpha: float, ratio_beta: float) -> list[float]:
    """alpha + beta R_c from the gradients of the output layer on each class's auxiliary samples."""
    module = copy.deepcopy(server).eval()
    last = [p for p in module.parameters() if p.dim() == 2][-1]
    gradient = []
    for x, y in world.auxiliary:
        (g,) = torch.autograd.grad(each_ce(module(x), y).mean(), [last])
        gradient.append([(-g[0]).tolist(), g[0].tolist()] if len(g) == 1 else g.tolist())
    n, result = len(gradient), []
    for p in range(n):
        ratios = []
        for j in range(len(gradient[0][0])):
            others = sum(gradient[c][p][j] for c in range(n) if c != p)
            if others != 0:
                ratios.append((n - 1) * gradient[p][p][j] / others)
        result.append(ratio_alpha + ratio_beta * min(abs(sum(ratios) / len(ratios)), 100.0))
    return result


def ratio_loss(
    world: World, lr: float, n_aux: int, ratio_alpha: float, ratio_beta: float, renew_every: int
) -> dict[str, Tensor]:
    weights = [ratio_alpha] * len(world.auxiliary)

    def weighted(module: nn.Module, x: Tensor, y: Tensor, start: Tensor) -> Tensor:
        losses = each_ce(module(x), y)
        return sum(weights[int(label)] * one for label, one in zip(y, losses, strict=True)) / len(y)

    def renew(r: int, server: nn.Module) -> None:
        if r % renew_every == renew_every - 1:
            weights[:] = class_weights(world, server, ratio_alpha, ratio_beta)

    return fedavg(world, lr, weighted, after=renew) | {"class_weights": torch.tensor(weights)}


class Duals:
    """CLIMB's client weights."""

    def __init__(self, world: World, dual_lr: float, tolerance: float, dual_scale: str, loss_batches: int,
                 dual_every: int, dual_max: float) -> None:  # fmt: skip
        n = len(world.clients)
        self.world, self.every, self.top = world, dual_every, dual_max
        self.lr = dual_lr * loss_batches / n if dual_scale == "code" else dual_lr
        self.tolerance = tolerance / loss_batches if dual_scale == "code" else tolerance
        self.values, self.losses = [0.0] * n, [float("nan")] * n

    def share(self, client: int) -> float:
        return 1 + self.values[client] - sum(self.values) / len(self.values)

    def after(self, r: int, server: nn.Module) -> None:
        if r % self.every != self.every - 1:
            return
        module = copy.deepcopy(server).eval()
        with torch.no_grad():
            self.losses = [float(each_ce(module(x), y).mean()) for x, y in self.world.clients]
        mean = sum(self.losses) / len(self.losses)
        for i, loss in enumerate(self.losses):
            moved = self.values[i] + self.lr * (loss - mean - self.tolerance)
            self.values[i] = min(max(moved, 0.0), self.top)

    def state(self) -> dict[str, Tensor]:
        return {"duals": torch.tensor(self.values), "client_losses": torch.tensor(self.losses)}


def climb(world: World, lr: float, **duals: Any) -> dict[str, Tensor]:
    d = Duals(world, **duals)
    return fedavg(world, lr, share=d.share, after=d.after) | d.state()
