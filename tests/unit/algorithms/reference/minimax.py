"""The AUC min-max methods with restarts."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from reference.losses import at_least, dual, minimax
from reference.world import World, average, flat, flat_buffers, set_flat


def coda(
    world: World, lr: float, lr_dual: float, proximal: float, restart_samples: int, score: str, dual_step: str,
    alpha_start: float = 0.0, alpha_least: float | None = None, a_b: str = "free", ascent: str = "each_step",
    stage_start: str = "last",
) -> dict[str, Tensor]:  # fmt: skip
    server, models, stage = world.module, [], 1
    a = b = torch.zeros(())
    alpha = torch.tensor(alpha_start)
    anchor = (flat(server), a, b)
    for r in range(world.rounds):
        if r in world.stages and stage_start == "average":
            w, a, b = (sum(parts) / len(parts) for parts in zip(*models, strict=True))
            server, models = copy.deepcopy(server), []
            set_flat(server, w)
        if r in world.stages or (r == 0 and ascent == "stage"):
            anchor = (flat(server), a, b)
            if restart_samples:
                positive, negative = [], []
                for k in range(len(world.clients)):
                    x, y = world.draw(k, restart_samples * (3**stage if ascent == "stage" else 1), r)
                    with torch.no_grad():
                        logits = copy.deepcopy(server).eval()(x).squeeze(-1)
                    scores = torch.sigmoid(logits) if score == "sigmoid" else logits
                    positive += scores[y == 1].tolist()
                    negative += scores[y == 0].tolist()
                alpha = torch.tensor(sum(negative) / len(negative) - sum(positive) / len(positive))
                alpha = at_least(alpha, alpha_least)
            stage += 1
        eta, eta_dual = world.decay(r) * lr, world.decay(r) * lr_dual
        results = []
        for k in world.participants(r):
            m, ak, bk, dk = copy.deepcopy(server), a, b, alpha
            for batch in world.round_batches(k, r):
                gw, ga, gb, gd = minimax(world, m, ak, bk, dk, batch, score, a_b)
                step = eta_dual * dual(gd, ak, bk, dk, dual_step)
                set_flat(m, flat(m) - eta * (gw + proximal * (flat(m) - anchor[0])))
                ak = ak - eta * (ga + proximal * (ak - anchor[1]))
                bk = bk - eta * (gb + proximal * (bk - anchor[2]))
                dk = at_least(dk + step, alpha_least) if ascent == "each_step" else dk
            results.append((m, ak, bk, dk))
        server = average([item[0] for item in results])
        a, b, alpha = (sum(item[i] for item in results) / len(results) for i in (1, 2, 3))
        models.append((flat(server), a, b))
    return {
        "x": torch.cat([flat(server), a[None], b[None]]), "alpha": alpha, "buffers": flat_buffers(server),
        "anchor": torch.cat([anchor[0], anchor[1][None], anchor[2][None]]),
    }  # fmt: skip


def coda_plus(world: World, **params: Any) -> dict[str, Tensor]:
    return coda(world, restart_samples=0, **params)


def codasca(
    world: World, lr: float, lr_dual: float, proximal: float, score: str, dual_step: str, server_lr: float,
    variates: str, anchor: str, alpha_start: float = 0.0, alpha_least: float | None = None, a_b: str = "free",
) -> dict[str, Tensor]:  # fmt: skip
    """codasca, Algorithms 3 and 4, with the control variates of equation (8): from the path, not from the gradients.

    z is (w, a, b, alpha) in one vector, and the signs of the ascent are in the step sizes.
    """
    n, server = len(world.clients), world.module
    z = torch.cat([flat(server), torch.tensor([0.0, 0.0, alpha_start])])
    centre, centres, iterates, lived = z[:-1], [z[:-1]] * n, [[] for _ in range(n)], [0] * n
    c, c_own, path = torch.zeros_like(z), [torch.zeros_like(z) for _ in range(n)], []
    used = torch.ones_like(z)
    if variates != "both":
        used[-1] = float(variates == "dual")
        used[:-1] = float(variates == "primal")
    for r in range(world.rounds):
        if r in world.stages:
            centre, path = (sum(path) / len(path) if anchor == "average" else z[:-1]), []
        eta = world.decay(r) * torch.full_like(z, lr)
        eta[-1] = -world.decay(r) * lr_dual
        chosen, locals_, ends, deltas = world.participants(r), [], [], []
        for k in chosen:
            stage = sum(at <= r for at in world.stages)
            if stage > lived[k]:
                if iterates[k]:
                    centres[k] = sum(iterates[k]) / len(iterates[k])
                iterates[k], lived[k] = [], stage
            near = centres[k] if anchor == "own_average" else centre
            m, zk = copy.deepcopy(server), z
            work, gradients = world.round_batches(k, r), []
            for batch in work:
                a, b, alpha = zk[-3], zk[-2], zk[-1]
                gw, ga, gb, gd = minimax(world, m, a, b, alpha, batch, score, a_b)
                g = torch.cat([gw, ga[None], gb[None], dual(gd, a, b, alpha, dual_step)[None]])
                g[:-1] += proximal * (zk[:-1] - near)
                gradients = [*gradients, g]
                zk = zk - eta * (g - c_own[k] + c)
                zk = torch.cat([zk[:-1], at_least(zk[-1], alpha_least)[None]])
                iterates[k].append(zk[:-1])
                set_flat(m, zk[:-3])
            new = used * (c_own[k] - c + (z - zk) / (len(work) * eta))
            if alpha_least is not None:  # what was cut off is no part of the directions
                new[-1] = used[-1] * sum(gradients)[-1] / len(work)
            deltas.append(new - c_own[k])
            c_own[k] = new
            locals_.append(m)
            ends.append(zk)
        server = average(locals_)
        z = z + server_lr * (sum(ends) / len(ends) - z)
        set_flat(server, z[:-3])
        c = c + sum(deltas) / n
        path.append(z[:-1])
    kept = {"both": slice(None), "primal": slice(-1), "dual": slice(-1, None)}[variates]
    anchors = {"anchor_own": torch.stack(centres)} if anchor == "own_average" else {"anchor": centre}
    return anchors | {
        "x": z[:-1], "alpha": z[-1], "c": c[kept], "c_own": torch.stack(c_own)[:, kept],
        "buffers": flat_buffers(server),
    }  # fmt: skip
