"""Methods that average what clients train, and those with a step of the server."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from reference.losses import each_ce, local_gradient, mean_ce
from reference.world import World, average, flat, flat_buffers, named, set_flat


def fedavg(
    world: World, lr: float, loss: Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor] = mean_ce,
    share: Callable[[int], float] = lambda client: 1.0,
    after: Callable[[int, nn.Module], None] = lambda r, server: None, mu: float = 0.0,
) -> dict[str, Tensor]:  # fmt: skip
    """FedAvg on any loss; the changes of clients can be weighted, and something can happen after each round."""
    server = world.module
    for r in range(world.rounds):
        start, locals_, chosen = flat(server), [], world.participants(r)
        for k in chosen:
            m = copy.deepcopy(server)
            for x, y in world.round_batches(k, r):
                g = local_gradient(world, m, loss(m, x, y, start)) + mu * (flat(m) - start)
                set_flat(m, flat(m) - world.decay(r) * lr * g)
            locals_.append(m)
        server = average(locals_)
        changes = [share(k) * (flat(m) - start) for k, m in zip(chosen, locals_, strict=True)]
        set_flat(server, start + sum(changes) / len(chosen))
        after(r, server)
    return {"x": flat(server), "buffers": flat_buffers(server)}


def fedprox(world: World, lr: float, mu: float) -> dict[str, Tensor]:
    """The gradient of mu/2 |w - w_r|^2 is added after clipping, as weight decay is."""
    return fedavg(world, lr, mu=mu)


def adam(world: World, lr: float, beta_1: float, beta_2: float, epsilon: float) -> dict[str, Tensor]:
    """Each client keeps an optimiser of torch's own from round to round."""
    server, kept = world.module, {}
    for r in range(world.rounds):
        locals_ = []
        for k in world.participants(r):
            m = copy.deepcopy(server)
            optimiser = torch.optim.Adam(m.parameters(), lr=lr, betas=(beta_1, beta_2), eps=epsilon)
            if k in kept:
                optimiser.load_state_dict(kept[k])
            for x, y in world.round_batches(k, r):
                g = local_gradient(world, m, mean_ce(m, x, y, flat(server)))
                for p, part in zip(m.parameters(), named(m, g).values(), strict=True):
                    p.grad = part
                optimiser.param_groups[0]["lr"] = world.decay(r) * lr
                optimiser.step()
            kept[k] = optimiser.state_dict()
            locals_.append(m)
        server = average(locals_)

    def sums(name: str) -> Tensor:
        return torch.stack(
            [torch.cat([part[name].reshape(-1) for part in kept[k]["state"].values()]) for k in sorted(kept)]
        )

    result = {
        "x": flat(server),
        "buffers": flat_buffers(server),
        "m": sums("exp_avg"),
        "v": sums("exp_avg_sq"),
    }
    return result | {"t": sums("step")[:, 0].to(result["x"])}


def focal_loss(world: World, lr: float, gamma: float) -> dict[str, Tensor]:
    def focal(module: nn.Module, x: Tensor, y: Tensor, start: Tensor) -> Tensor:
        p = torch.exp(-each_ce(module(x), y))
        return (-((1 - p) ** gamma) * torch.log(p)).mean()

    return fedavg(world, lr, focal)


def local_models(
    world: World, server: nn.Module, r: int, lr: float, correction: Callable[[int, Tensor], Tensor]
) -> list[tuple[int, nn.Module, int]]:
    """Each participant's model after its round, and how many steps it made; ``correction`` is added to gradients."""
    result = []
    for k in world.participants(r):
        m, work = copy.deepcopy(server), world.round_batches(k, r)
        for x, y in work:
            g = local_gradient(world, m, each_ce(m(x), y).mean()) + correction(k, flat(m))
            set_flat(m, flat(m) - world.decay(r) * lr * g)
        result.append((k, m, len(work)))
    return result


def fednova(world: World, lr: float) -> dict[str, Tensor]:
    server = world.module
    for r in range(world.rounds):
        start = flat(server)
        trained = local_models(world, server, r, lr, lambda k, w: torch.zeros_like(w))
        effective = sum(steps for _, _, steps in trained) / len(trained)
        normalised = [(start - flat(m)) / steps for _, m, steps in trained]
        server = average([m for _, m, _ in trained])
        set_flat(server, start - effective * sum(normalised) / len(trained))
    return {"x": flat(server), "buffers": flat_buffers(server)}


def feddyn(world: World, lr: float, alpha: float) -> dict[str, Tensor]:
    server, n = world.module, len(world.clients)
    h = torch.zeros_like(flat(server))
    g_own = [torch.zeros_like(h) for _ in range(n)]
    for r in range(world.rounds):
        start = flat(server)
        trained = local_models(world, server, r, lr, lambda k, w, start=start: alpha * (w - start) - g_own[k])
        for k, m, _ in trained:
            g_own[k] = g_own[k] - alpha * (flat(m) - start)
            h = h - alpha / n * (flat(m) - start)
        server = average([m for _, m, _ in trained])
        set_flat(server, flat(server) - h / alpha)
    return {"x": flat(server), "buffers": flat_buffers(server), "h": h, "g_own": torch.stack(g_own)}


def adaptive(
    world: World, lr: float, server_lr: float, beta1: float, tau: float, second: Callable[[float, float], float]
) -> dict[str, Tensor]:  # fmt: skip
    """Reddi et al., Algorithm 2, number by number."""
    server = world.module
    m, v = [0.0] * len(flat(server)), [tau**2] * len(flat(server))
    for r in range(world.rounds):
        start = flat(server).tolist()
        trained = local_models(world, server, r, lr, lambda k, w: torch.zeros_like(w))
        server = average([module for _, module, _ in trained])
        new = []
        for i, (x, mean) in enumerate(zip(start, flat(server).tolist(), strict=True)):
            m[i] = beta1 * m[i] + (1 - beta1) * (mean - x)
            v[i] = second(v[i], (mean - x) ** 2)
            new.append(x + server_lr * m[i] / (v[i] ** 0.5 + tau))
        set_flat(server, torch.tensor(new))
    return {"x": flat(server), "buffers": flat_buffers(server), "m": torch.tensor(m), "v": torch.tensor(v)}


def fedadam(
    world: World, lr: float, server_lr: float, beta1: float, beta2: float, tau: float
) -> dict[str, Tensor]:
    return adaptive(world, lr, server_lr, beta1, tau, lambda v, d: beta2 * v + (1 - beta2) * d)


def fedyogi(
    world: World, lr: float, server_lr: float, beta1: float, beta2: float, tau: float
) -> dict[str, Tensor]:
    def second(v: float, d: float) -> float:
        return v - (1 - beta2) * d * ((v > d) - (v < d))

    return adaptive(world, lr, server_lr, beta1, tau, second)


def representation(module: nn.Module, x: Tensor) -> Tensor:
    """What enters the last linear layer of a sequential network."""
    for part in list(module)[:-1]:
        x = part(x)
    return x


def moon(world: World, lr: float, mu: float, temperature: float) -> dict[str, Tensor]:
    server = world.module
    previous = [copy.deepcopy(server) for _ in world.clients]
    for r in range(world.rounds):
        locals_, chosen = [], world.participants(r)
        for k in chosen:
            m = copy.deepcopy(server)
            others = [copy.deepcopy(module).eval() for module in (server, previous[k])]
            for x, y in world.round_batches(k, r):
                z = representation(m, x)
                losses = each_ce(m[-1](z), y)
                for i in range(len(y)):
                    e = []
                    for other in others:
                        z_other = representation(other, x).detach()[i]
                        e.append(torch.exp(z[i] @ z_other / (z[i].norm() * z_other.norm()) / temperature))
                    losses = losses - mu / len(y) * torch.log(e[0] / (e[0] + e[1]))
                set_flat(m, flat(m) - world.decay(r) * lr * local_gradient(world, m, losses.mean()))
            locals_.append(m)
            previous[k] = m
        server = average(locals_)
    return {
        "x": flat(server), "buffers": flat_buffers(server), "previous": torch.stack([flat(m) for m in previous]),
        "previous_buffers": torch.stack([flat_buffers(m) for m in previous]),
    }  # fmt: skip


def fedlc(world: World, lr: float, temperature: float) -> dict[str, Tensor]:
    server = world.module
    n_classes = len(world.auxiliary)
    for r in range(world.rounds):
        locals_ = []
        for k in world.participants(r):
            m = copy.deepcopy(server)
            labels = world.clients[k][1].tolist()
            margins = torch.tensor(
                [temperature / max(labels.count(c), 1e-8) ** 0.25 for c in range(n_classes)]
            )
            for x, y in world.round_batches(k, r):
                z = m(x)
                logits = torch.cat([torch.zeros_like(z), z], 1) if n_classes == 2 else z
                loss = cross_entropy(logits - margins, y)
                set_flat(m, flat(m) - world.decay(r) * lr * local_gradient(world, m, loss))
            locals_.append(m)
        server = average(locals_)
    return {"x": flat(server), "buffers": flat_buffers(server)}
