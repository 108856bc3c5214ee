"""Methods that weight classes or clients."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from reference.averaging import fedavg
from reference.losses import each_ce
from reference.world import World


def class_weights(
    world: World, server: nn.Module, form: str, n_aux: int, ratio_alpha: float, ratio_beta: float, ratio_max: float,
    ratio_undefined: float, dominance: float,
) -> list[float]:  # fmt: skip
    """alpha + beta R_c from the gradients of the output layer on each class's auxiliary samples."""
    module = copy.deepcopy(server).eval()
    last = [p for p in module.parameters() if p.dim() == 2][-1]
    gradient = []
    for x, y in world.auxiliary:
        (g,) = torch.autograd.grad(each_ce(module(x), y).mean(), [last])
        gradient.append([(-g[0]).tolist(), g[0].tolist()] if len(g) == 1 else g.tolist())
    ratios = (
        mean_of_ratios(gradient) if form == "climb" else ratio_of_sums(gradient, dominance, ratio_undefined)
    )
    return [ratio_alpha + ratio_beta * min(ratio, ratio_max) for ratio in ratios]


def mean_of_ratios(gradient: list[Any]) -> list[float]:
    n, result = len(gradient), []
    for p in range(n):
        ratios = []
        for j in range(len(gradient[0][0])):
            others = sum(gradient[c][p][j] for c in range(n) if c != p)
            if others != 0:
                ratios.append((n - 1) * gradient[p][p][j] / others)
        result.append(abs(sum(ratios) / len(ratios)))
    return result


def ratio_of_sums(gradient: list[Any], dominance: float, undefined: float) -> list[float]:
    n = len(gradient)
    kept, rest = [0.0] * n, [0.0] * n
    for i in range(len(gradient[0])):
        for j in range(len(gradient[0][0])):
            updates = [-gradient[c][i][j] for c in range(n)]
            first = updates.index(max(updates))
            top = updates[first]
            near = [abs(u) > dominance * abs(top) if top else u == 0 for u in updates]
            if sum(near) < 2:
                kept[first] += top
                rest[first] += sum(updates[c] for c in range(n) if c != first) / (n - 1)
    return [abs(kept[c]) / abs(rest[c]) if rest[c] else undefined for c in range(n)]


def ratio_loss(world: World, lr: float, renew_every: int, **ratio: Any) -> dict[str, Tensor]:
    weights = class_weights(world, world.module, **ratio)

    def weighted(module: nn.Module, x: Tensor, y: Tensor, start: Tensor) -> Tensor:
        return weighted_mean(each_ce(module(x), y), y, weights, ratio["form"])

    def renew(r: int, server: nn.Module) -> None:
        if r % renew_every == renew_every - 1:
            weights[:] = class_weights(world, server, **ratio)

    return fedavg(world, lr, weighted, after=renew) | {"class_weights": torch.tensor(weights)}


def weighted_mean(losses: Tensor, y: Tensor, weights: list[float], form: str) -> Tensor:
    factors = [weights[int(label)] for label in y]
    total = sum(factor * one for factor, one in zip(factors, losses, strict=True))
    return total / (sum(factors) if form == "climb" else len(y))


class Duals:
    """CLIMB's client weights."""

    def __init__(self, world: World, dual_lr: float, tolerance: float, dual_scale: str, dual_every: int,
                 dual_max: float) -> None:  # fmt: skip
        n = len(world.clients)
        self.world, self.every, self.top, self.tolerance = world, dual_every, dual_max, tolerance
        self.lr, self.code = dual_lr / n if dual_scale == "code" else dual_lr, dual_scale == "code"
        self.values, self.losses = [0.0] * n, [float("nan")] * n

    def share(self, client: int) -> float:
        return 1 + self.values[client] - sum(self.values) / len(self.values)

    def after(self, r: int, server: nn.Module) -> None:
        if r % self.every != self.every - 1:
            return
        module = copy.deepcopy(server).eval()
        with torch.no_grad():
            self.losses = [float(each_ce(module(x), y).mean()) for x, y in self.world.clients]
        counted = (
            [b * f for b, f in zip(self.world.epoch_batches, self.losses, strict=True)]
            if self.code
            else self.losses
        )
        mean = sum(counted) / len(counted)
        for i, loss in enumerate(counted):
            moved = self.values[i] + self.lr * (loss - mean - self.tolerance)
            self.values[i] = min(max(moved, 0.0), self.top)

    def state(self) -> dict[str, Tensor]:
        return {"duals": torch.tensor(self.values), "client_losses": torch.tensor(self.losses)}


def climb(world: World, lr: float, **duals: Any) -> dict[str, Tensor]:
    d = Duals(world, **duals)
    return fedavg(world, lr, share=d.share, after=d.after) | d.state()
