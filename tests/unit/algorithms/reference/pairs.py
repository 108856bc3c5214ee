"""The method on pairs of scores."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.func import functional_call

from reference.losses import local_gradient, without_trace
from reference.world import World, average, flat, flat_buffers, set_flat


def pairwise(
    world: World, lr: float, loss: str, margin: float, temperature: float, slope: float, q: float, score: str,
    passive: int, opening: int, pool: str, share: str, halves: str = "as_algorithm",
) -> dict[str, Tensor]:  # fmt: skip
    """cycp, Algorithms 3 and 4, pair by pair; the sigmoid loss alone."""
    assert loss == "sigmoid" and world.opening is not None and world.passive is not None

    def scored(outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs.squeeze(-1)) if score == "sigmoid" else outputs.squeeze(-1)

    def psi(positive: Tensor | float, negative: Tensor | float) -> Tensor:
        return 1 / (1 + torch.exp((positive - negative) / temperature))

    def merged(sent: list[list[float]]) -> list[float]:
        most = max(map(len, sent), default=0)
        if share == "count":
            return [value for own in sent for value in own]
        return [own[at * len(own) // most] for own in sent if own for at in range(most)]

    server = world.module
    collected: dict[int, list[list[float]]] = {0: [], 1: []}
    opened: dict[int, list[list[float]]] = {0: [], 1: []}
    seen = []
    for r in range(world.cycle if pool == "cycle" else 1):
        for k in world.participants(r):
            if k not in seen:
                seen.append(k)
                x, y = world.opening(k, opening)
                buffers = without_trace(server)
                s = scored(functional_call(server, (dict(server.named_parameters()), buffers), (x,)))
                for of in (0, 1):
                    opened[of].append(
                        [v for v, label in zip(s.tolist(), y.tolist(), strict=True) if label == of]
                    )
    pools = {label: merged(opened[label]) for label in (0, 1)}
    for r in range(world.rounds):
        locals_ = []
        for k in world.participants(r):
            m, work = copy.deepcopy(server), world.round_batches(k, r)
            for label in (0, 1):
                collected[label].append([])
            received = {}
            for label, sign in ((1, "positives"), (0, "negatives")):
                places = world.passive(sign, r, k, len(pools[label]), passive)
                received[label] = [pools[label][i] for i in places]
            for at, (x, y) in enumerate(work):
                s = scored(m(x))
                terms = 0.0 * s.sum()
                for label in (0, 1):
                    mine = [one for one, of in zip(s, y, strict=True) if of == label]
                    others = received[1 - label]
                    turn = (
                        [others[(at * passive + j) % len(others)] for j in range(passive)] if others else []
                    )
                    both = [psi(a, b) if label else psi(b, a) for a in mine for b in turn]
                    if both:
                        having = sum(bool((y == label).any()) for _, y in world.clients)
                        scale = len(world.clients) / having if halves == "equal" else 1.0
                        terms = terms + scale * sum(both) / len(both)
                    collected[label][-1] += [float(one.detach()) for one in mine]
                set_flat(m, flat(m) - world.decay(r) * lr * local_gradient(world, m, terms))
            locals_.append(m)
        server = average(locals_)
        if pool == "round" or (r + 1) % world.cycle == 0:
            for label in (0, 1):
                pools[label] = merged(collected[label]) or pools[label]
                collected[label] = []
    waiting = {label: [value for own in collected[label] for value in own] for label in (0, 1)}
    tensors = {
        f"{kind}_{sign}": torch.tensor(values[label])
        for kind, values in (("pool", pools), ("next", waiting))
        for label, sign in ((1, "positives"), (0, "negatives"))
    }
    counts = {
        f"counts_{sign}": torch.tensor([len(own) for own in collected[label]], dtype=torch.int64)
        for label, sign in ((1, "positives"), (0, "negatives"))
    }
    return {"x": flat(server), "buffers": flat_buffers(server)} | tensors | counts
