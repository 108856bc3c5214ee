"""Methods with control variates, and the amplified ones of clients in turns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from reference.averaging import fedavg
from reference.losses import local_gradient, mean_ce
from reference.weighted import Duals
from reference.world import World, average, flat, flat_buffers, set_flat


def scaffold(
    world: World, lr: float, server_lr: float, share: Callable[[int], float] = lambda client: 1.0,
    after: Callable[[int, nn.Module], None] = lambda r, server: None,
) -> dict[str, Tensor]:  # fmt: skip
    """SCAFFOLD; with clients' changes weighted, the variate sent to the clients is weighted likewise."""
    n, server = len(world.clients), world.module
    mean = c = torch.zeros_like(flat(server))
    c_own = [torch.zeros_like(c) for _ in range(n)]
    for r in range(world.rounds):
        start, locals_, deltas, chosen = flat(server), [], [], world.participants(r)
        eta = world.decay(r) * lr
        for k in chosen:
            m = copy.deepcopy(server)
            work = world.round_batches(k, r)
            for x, y in work:
                g = local_gradient(world, m, mean_ce(m, x, y, start))
                set_flat(m, flat(m) - eta * (g - c_own[k] + c))
            new = c_own[k] - c + (start - flat(m)) / (len(work) * eta)
            deltas.append(new - c_own[k])
            c_own[k] = new
            locals_.append(m)
        server = average(locals_)
        changes = [share(k) * (flat(m) - start) for k, m in zip(chosen, locals_, strict=True)]
        set_flat(server, start + server_lr * sum(changes) / len(chosen))
        mean = mean + len(chosen) / n * sum(deltas) / len(chosen)
        after(r, server)
        c = mean + sum((share(k) - 1) * c_own[k] for k in range(n)) / n
    kept = torch.stack(c_own)
    return {
        "x": flat(server),
        "buffers": flat_buffers(server),
        "c": c,
        "c_mean": mean,
        "c_own": kept,
        "variates": kept,
    }


def climb_scaffold(world: World, lr: float, server_lr: float, **duals: Any) -> dict[str, Tensor]:
    d = Duals(world, **duals)
    return scaffold(world, lr, server_lr, share=d.share, after=d.after) | d.state()


def amplify(world: World, r: int, server: nn.Module, start: Tensor, kappa: float) -> Tensor:
    """At the end of a cycle x_0 + kappa (x - x_0); return where the running cycle began."""
    if (r + 1) % world.cycle:
        return start
    set_flat(server, start + kappa * (flat(server) - start))
    return flat(server)


def a_fedavg(world: World, lr: float, kappa: float) -> dict[str, Tensor]:
    start = flat(world.module)

    def after(r: int, server: nn.Module) -> None:
        nonlocal start
        start = amplify(world, r, server, start, kappa)

    return fedavg(world, lr, after=after) | {"start": start}


def a_scaffold(world: World, lr: float, kappa: float) -> dict[str, Tensor]:
    """All gradients of a cycle are kept, and the variates of those who took part renewed when it ends."""
    n, server = len(world.clients), world.module
    start = flat(server)
    c, c_own = torch.zeros_like(start), [torch.zeros_like(start) for _ in range(n)]
    gradients: list[list[Tensor]] = [[] for _ in range(n)]
    for r in range(world.rounds):
        locals_ = []
        for k in world.participants(r):
            m = copy.deepcopy(server)
            for x, y in world.round_batches(k, r):
                g = local_gradient(world, m, mean_ce(m, x, y, start))
                gradients[k].append(g)
                set_flat(m, flat(m) - world.decay(r) * lr * (g - c_own[k] + c))
            locals_.append(m)
        server = average(locals_)
        start = amplify(world, r, server, start, kappa)
        if (r + 1) % world.cycle == 0:
            for k in range(n):
                if gradients[k]:
                    new = sum(gradients[k]) / len(gradients[k])
                    c, c_own[k], gradients[k] = c + (new - c_own[k]) / n, new, []
    return {"x": flat(server), "buffers": flat_buffers(server), "start": start, "c": c}
