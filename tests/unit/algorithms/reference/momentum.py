"""Local SGD with momentum, and local SCGDAM and its like."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.functional import hessian
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from reference.losses import at_least, ce_at, dual, local_gradient, minimax
from reference.weighted import class_weights, weighted_mean
from reference.world import Data, World, average, flat, flat_buffers, set_flat


def local_sgdm(
    world: World, lr: float, momentum: float, weigh: Callable[[nn.Module], list[float]] | None = None,
    form: str = "wang",
) -> dict[str, Tensor]:  # fmt: skip
    server, m_server = world.module, torch.zeros_like(flat(world.module))
    weights = [1.0, 1.0] if weigh is None else weigh(server)
    for r in range(world.rounds):
        locals_, momenta = [], []
        for k in world.participants(r):
            m, velocity = copy.deepcopy(server), m_server
            for x, y in world.round_batches(k, r):
                part = bce(m(x).squeeze(-1), y.to(x.dtype), reduction="none")
                loss = weighted_mean(part, y, weights, form)
                velocity = momentum * velocity + local_gradient(world, m, loss)
                set_flat(m, flat(m) - world.decay(r) * lr * velocity)
            locals_.append(m)
            momenta.append(velocity)
        server = average(locals_)
        m_server = sum(momenta) / len(momenta)
        if weigh is not None:
            weights = weigh(server)
    weights_now = {"class_weights": torch.tensor(weights)}
    return {"x": flat(server), "buffers": flat_buffers(server), "m": m_server} | weights_now


def local_sgdm_cw(world: World, lr: float, momentum: float, power: float) -> dict[str, Tensor]:
    labels = [int(label) for _, y in world.clients for label in y]
    weights = [(len(labels) / (2 * labels.count(c))) ** power for c in (0, 1)]
    results = local_sgdm(world, lr, momentum, lambda server: weights)
    del results["class_weights"]
    return results


def local_sgdm_rl(world: World, lr: float, momentum: float, **ratio: Any) -> dict[str, Tensor]:
    def weigh(server: nn.Module) -> list[float]:
        return class_weights(world, server, **ratio)

    return local_sgdm(world, lr, momentum, weigh, ratio["form"])


def local_sgdam(
    world: World, lr: float, lr_dual: float, beta_x: float, beta_y: float, score: str, dual_step: str,
    alpha_start: float = 0.0, alpha_least: float | None = None, a_b: str = "free",
) -> dict[str, Tensor]:  # fmt: skip
    n = len(world.clients)
    zero, alpha = torch.zeros(()), torch.tensor(alpha_start)
    states: list[dict[str, Any]] = []
    for k in range(n):
        m = copy.deepcopy(world.module)
        start = world.first(k, "first batches")
        gw, ga, gb, gd = minimax(world, copy.deepcopy(m), zero, zero, alpha, start, score, a_b)
        gd = dual(gd, zero, zero, alpha, dual_step)
        states.append(
            {"module": m, "a": zero, "b": zero, "alpha": alpha, "uw": gw, "ua": ga, "ub": gb, "v": gd}
        )
    for r in range(world.rounds):
        eta, eta_dual = world.decay(r) * lr, world.decay(r) * lr_dual
        for k, s in enumerate(states):
            for batch in world.round_batches(k, r):
                set_flat(s["module"], flat(s["module"]) - eta * s["uw"])
                s["a"], s["b"] = s["a"] - eta * s["ua"], s["b"] - eta * s["ub"]
                s["alpha"] = at_least(s["alpha"] + eta_dual * s["v"], alpha_least)
                gw, ga, gb, gd = minimax(world, s["module"], s["a"], s["b"], s["alpha"], batch, score, a_b)
                gd = dual(gd, s["a"], s["b"], s["alpha"], dual_step)
                s["uw"] = (1 - beta_x) * s["uw"] + beta_x * gw
                s["ua"] = (1 - beta_x) * s["ua"] + beta_x * ga
                s["ub"] = (1 - beta_x) * s["ub"] + beta_x * gb
                s["v"] = (1 - beta_y) * s["v"] + beta_y * gd
        mean = {name: sum(s[name] for s in states) / n for name in ("a", "b", "alpha", "uw", "ua", "ub", "v")}
        module = average([s["module"] for s in states])
        states = [{"module": copy.deepcopy(module), **mean} for _ in range(n)]
    s = states[0]
    return {
        "x": torch.cat([flat(module), s["a"][None], s["b"][None]]), "alpha": s["alpha"], "v": s["v"],
        "u": torch.cat([s["uw"], s["ua"][None], s["ub"][None]]), "buffers": flat_buffers(module),
    }  # fmt: skip


def local_scgdam(
    world: World, lr: float, lr_dual: float, beta_x: float, beta_y: float, score: str, dual_step: str,
    alpha_h: float, rho: float, hvp: str, alpha_start: float = 0.0, alpha_least: float | None = None,
    a_b: str = "free",
) -> dict[str, Tensor]:  # fmt: skip
    """localscgdam, Algorithm 1; the Hessian is written out in full, by two reverse passes (forward mode is inexact
    for batch-norm in torch)."""
    n, zero = len(world.clients), torch.zeros(())

    def compositional(s: dict[str, Any], zeta: Data, xi: Data, weight: float) -> None:
        """Update h, and return the gradients at (x, h) in ``g*``."""
        w = flat(s["module"])
        leaf = w.clone().requires_grad_()
        (inner,) = torch.autograd.grad(ce_at(s["module"], leaf, xi), leaf)
        s["module"](xi[0])  # the running statistics of x
        set_flat(s["h"], (1 - weight) * flat(s["h"]) + weight * (w - rho * inner))
        s["ha"] = (1 - weight) * s["ha"] + weight * s["a"]
        s["hb"] = (1 - weight) * s["hb"] + weight * s["b"]
        qw, qa, qb, qd = minimax(world, s["h"], s["ha"], s["hb"], s["alpha"], zeta, score, a_b)
        if hvp == "exact":
            qw = qw - rho * (hessian(lambda v: ce_at(s["module"], v, xi), w, vectorize=True) @ qw)
        elif hvp == "finite_difference":
            shift, ends = 1e-2 * qw / qw.norm(), []
            for sign in (1, -1):
                leaf = (w + sign * shift).requires_grad_()
                ends.append(torch.autograd.grad(ce_at(s["module"], leaf, xi), leaf)[0])
            qw = qw - rho * (ends[0] - ends[1]) / 2e-2 * qw.norm()
        s |= {"gw": qw, "ga": qa, "gb": qb, "gd": dual(qd, s["ha"], s["hb"], s["alpha"], dual_step)}

    states: list[dict[str, Any]] = []
    for k in range(n):
        s: dict[str, Any] = {"a": zero, "b": zero, "alpha": torch.tensor(alpha_start), "ha": zero, "hb": zero}
        s |= {"module": copy.deepcopy(world.module), "h": copy.deepcopy(world.module)}
        compositional(s, world.first(k, "first batches"), world.first(k, "first inner batches"), 1.0)
        s |= {"uw": s["gw"], "ua": s["ga"], "ub": s["gb"], "v": s["gd"]}
        for name in ("module", "h"):  # initialising leaves no trace in the running statistics
            for mine, old in zip(s[name].buffers(), world.module.buffers(), strict=True):
                mine.copy_(old)
        states.append(s)
    for r in range(world.rounds):
        eta, eta_dual = world.decay(r) * lr, world.decay(r) * lr_dual
        for k, s in enumerate(states):
            work = zip(world.round_batches(k, r), world.round_batches(k, r, "inner batches"), strict=True)
            for zeta, xi in work:
                set_flat(s["module"], flat(s["module"]) - eta * s["uw"])
                s["a"], s["b"] = s["a"] - eta * s["ua"], s["b"] - eta * s["ub"]
                s["alpha"] = at_least(s["alpha"] + eta_dual * s["v"], alpha_least)
                compositional(s, zeta, xi, alpha_h)
                s["uw"] = (1 - beta_x) * s["uw"] + beta_x * s["gw"]
                s["ua"] = (1 - beta_x) * s["ua"] + beta_x * s["ga"]
                s["ub"] = (1 - beta_x) * s["ub"] + beta_x * s["gb"]
                s["v"] = (1 - beta_y) * s["v"] + beta_y * s["gd"]
        names = ("a", "b", "alpha", "ha", "hb", "uw", "ua", "ub", "v")
        mean = {name: sum(s[name] for s in states) / n for name in names}
        module, h = average([s["module"] for s in states]), average([s["h"] for s in states])
        states = [{"module": copy.deepcopy(module), "h": copy.deepcopy(h), **mean} for _ in range(n)]
    s = states[0]
    return {
        "x": torch.cat([flat(module), s["a"][None], s["b"][None]]), "alpha": s["alpha"], "v": s["v"],
        "u": torch.cat([s["uw"], s["ua"][None], s["ub"][None]]),
        "h": torch.cat([flat(h), s["ha"][None], s["hb"][None]]),
        "buffers": flat_buffers(module), "buffers_h": flat_buffers(h),
    }  # fmt: skip
