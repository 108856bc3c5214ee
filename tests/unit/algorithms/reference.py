"""The methods once more, as plain as can be: one client after the other, one nn.Module, loops, no flat vectors.

Written from the papers' equations, not from ``fedbench.algorithms``; slow, and only for networks of a few hundred
parameters. Everything that a method must not invent (batches, initial weights, the share of positives) comes in.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.functional import hessian
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy

Data = tuple[Tensor, Tensor]


@dataclass
class World:
    """What every method is given.

    Attributes:
        module: the network with its initial weights and statistics.
        clients: each client's inputs and labels.
        batches: (client, round, purpose) -> the round's batches as positions in the client's samples.
        first: (client, purpose) -> the batch that initialises momenta.
        draw: (client, n, round) -> the larger batch of a dual restart.
        auxiliary: one batch per class.
        prior: share of positives.
        rounds: how many.
        stages: rounds that begin a stage.
        factor: what a stage multiplies step sizes with.
        chosen: round -> participants; ``None`` for all clients.
        clip_norm: bound on a gradient's norm.
        clip_value: bound on each of its entries.
        weight_decay: added to gradients, times the parameters.
        cycle: rounds of a cycle.
        opening: (client, n) -> the samples that a client scores before round 0.
        passive: (sign, round, client, n, wanted) -> places in a pool of n that a client receives.
    """

    module: nn.Module
    clients: list[Data]
    batches: Callable[[int, int, str], list[Any]]
    first: Callable[[int, str], Data]
    draw: Callable[[int, int, int], Data]
    auxiliary: list[Data]
    prior: float
    rounds: int
    stages: tuple[int, ...] = ()
    factor: float = 0.1
    chosen: Callable[[int], list[int]] | None = None
    clip_norm: float | None = None
    clip_value: float = float("inf")
    weight_decay: float = 0.0
    cycle: int = 1
    opening: Callable[[int, int], Data] | None = None
    passive: Callable[[str, int, int, int, int | None], list[int]] | None = None

    def participants(self, index: int) -> list[int]:
        return list(range(len(self.clients))) if self.chosen is None else self.chosen(index)

    def round_batches(self, client: int, index: int, purpose: str = "batches") -> list[Data]:
        x, y = self.clients[client]
        return [(x[b], y[b]) for b in self.batches(client, index, purpose)]

    def decay(self, index: int) -> float:
        result = 1.0
        for stage in self.stages:
            if index >= stage:
                result *= self.factor
        return result


def flat(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def flat_buffers(module: nn.Module) -> Tensor:
    parts = [b.detach().reshape(-1) for b in module.buffers() if b.is_floating_point()]
    return torch.cat(parts) if parts else torch.zeros(0)


def set_flat(module: nn.Module, vector: Tensor) -> None:
    torch.nn.utils.vector_to_parameters(vector, module.parameters())


def average(modules: list[nn.Module]) -> nn.Module:
    """Average parameters and floating-point buffers."""
    result = copy.deepcopy(modules[0])
    for target, *sources in zip(result.parameters(), *[m.parameters() for m in modules], strict=True):
        target.data = sum(s.data for s in sources) / len(sources)
    for target, *sources in zip(result.buffers(), *[m.buffers() for m in modules], strict=True):
        if target.is_floating_point():
            target.copy_(sum(sources) / len(sources))
    return result


def named(module: nn.Module, w: Tensor) -> dict[str, Tensor]:
    """Split a flat vector into the module's named parameters."""
    result, at = {}, 0
    for name, p in module.named_parameters():
        result[name] = w[at : at + p.numel()].view_as(p)
        at += p.numel()
    return result


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
    world: World, module: nn.Module, a: Tensor, b: Tensor, alpha: Tensor, data: Data, score: str
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
    return regularised(world, gradient, flat(module)), grads[-3], grads[-2], grads[-1]


def dual(g_alpha: Tensor, a: Tensor, b: Tensor, alpha: Tensor, rule: str) -> Tensor:
    return g_alpha if rule == "batch" else 2 * (b - a) - 2 * alpha


# ---- cross-entropy methods ------------------------------------------------------------------------------------------


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

    found = {
        "x": flat(server),
        "buffers": flat_buffers(server),
        "m": sums("exp_avg"),
        "v": sums("exp_avg_sq"),
    }
    return found | {"t": sums("step")[:, 0].to(found["x"])}


def focal_loss(world: World, lr: float, gamma: float) -> dict[str, Tensor]:
    def focal(module: nn.Module, x: Tensor, y: Tensor, start: Tensor) -> Tensor:
        p = torch.exp(-each_ce(module(x), y))
        return (-((1 - p) ** gamma) * torch.log(p)).mean()

    return fedavg(world, lr, focal)


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
    own = torch.stack(c_own)
    return {
        "x": flat(server),
        "buffers": flat_buffers(server),
        "c": c,
        "c_mean": mean,
        "c_own": own,
        "variates": own,
    }


def climb_scaffold(world: World, lr: float, server_lr: float, **duals: Any) -> dict[str, Tensor]:
    d = Duals(world, **duals)
    return scaffold(world, lr, server_lr, share=d.share, after=d.after) | d.state()


def local_sgdm(world: World, lr: float, momentum: float, weigh: Callable[[nn.Module], list[float]] | None = None,
               first_weights: tuple[float, float] = (1.0, 1.0)) -> dict[str, Tensor]:  # fmt: skip
    server, m_server = world.module, torch.zeros_like(flat(world.module))
    weights = list(first_weights)
    for r in range(world.rounds):
        locals_, momenta = [], []
        for k in world.participants(r):
            m, velocity = copy.deepcopy(server), m_server
            for x, y in world.round_batches(k, r):
                each = bce(m(x).squeeze(-1), y.to(x.dtype), reduction="none")
                loss = sum(weights[int(label)] * one for label, one in zip(y, each, strict=True)) / len(y)
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


def local_sgdm_rl(
    world: World, lr: float, momentum: float, n_aux: int, ratio_alpha: float, ratio_beta: float
) -> dict[str, Tensor]:
    def weigh(server: nn.Module) -> list[float]:
        return class_weights(world, server, ratio_alpha, ratio_beta)

    return local_sgdm(world, lr, momentum, weigh, (ratio_alpha, ratio_alpha))


# ---- cyclic participation -------------------------------------------------------------------------------------------


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


def pairwise(
    world: World, lr: float, loss: str, margin: float, temperature: float, slope: float, q: float, score: str,
    passive: int, opening: int, pool: str,
) -> dict[str, Tensor]:  # fmt: skip
    """cycp, Algorithms 3 and 4, pair by pair; the sigmoid loss alone."""
    assert loss == "sigmoid" and world.opening is not None and world.passive is not None

    def scored(outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs.squeeze(-1)) if score == "sigmoid" else outputs.squeeze(-1)

    def psi(positive: Tensor | float, negative: Tensor | float) -> Tensor:
        return 1 / (1 + torch.exp((positive - negative) / temperature))

    server = world.module
    pools: dict[int, list[float]] = {0: [], 1: []}
    collected: dict[int, list[float]] = {0: [], 1: []}
    seen = []
    for r in range(world.cycle if pool == "cycle" else 1):
        for k in world.participants(r):
            if k not in seen:
                seen.append(k)
                x, y = world.opening(k, opening)
                buffers = without_trace(server)
                s = scored(functional_call(server, (dict(server.named_parameters()), buffers), (x,)))
                for value, label in zip(s.tolist(), y.tolist(), strict=True):
                    pools[label].append(value)
    for r in range(world.rounds):
        locals_ = []
        for k in world.participants(r):
            m, work = copy.deepcopy(server), world.round_batches(k, r)
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
                        terms = terms + sum(both) / len(both)
                    collected[label] += [float(one.detach()) for one in mine]
                set_flat(m, flat(m) - world.decay(r) * lr * local_gradient(world, m, terms))
            locals_.append(m)
        server = average(locals_)
        if pool == "round" or (r + 1) % world.cycle == 0:
            for label in (0, 1):
                pools[label] = collected[label] or pools[label]
                collected[label] = []
    tensors = {
        f"{kind}_{sign}": torch.tensor(values[label])
        for kind, values in (("pool", pools), ("next", collected))
        for label, sign in ((1, "positives"), (0, "negatives"))
    }
    return {"x": flat(server), "buffers": flat_buffers(server)} | tensors


# ---- AUC methods ----------------------------------------------------------------------------------------------------


def coda(
    world: World, lr: float, lr_dual: float, proximal: float, restart_samples: int, score: str, dual_step: str
) -> dict[str, Tensor]:
    server = world.module
    a = b = alpha = torch.zeros(())
    anchor = (flat(server), a, b)
    for r in range(world.rounds):
        if r in world.stages:
            anchor = (flat(server), a, b)
            if restart_samples:
                positive, negative = [], []
                for k in range(len(world.clients)):
                    x, y = world.draw(k, restart_samples, r)
                    with torch.no_grad():
                        logits = copy.deepcopy(server).eval()(x).squeeze(-1)
                    scores = torch.sigmoid(logits) if score == "sigmoid" else logits
                    positive += scores[y == 1].tolist()
                    negative += scores[y == 0].tolist()
                alpha = torch.tensor(sum(negative) / len(negative) - sum(positive) / len(positive))
        eta, eta_dual = world.decay(r) * lr, world.decay(r) * lr_dual
        results = []
        for k in world.participants(r):
            m, ak, bk, dk = copy.deepcopy(server), a, b, alpha
            for batch in world.round_batches(k, r):
                gw, ga, gb, gd = minimax(world, m, ak, bk, dk, batch, score)
                step = eta_dual * dual(gd, ak, bk, dk, dual_step)
                set_flat(m, flat(m) - eta * (gw + proximal * (flat(m) - anchor[0])))
                ak = ak - eta * (ga + proximal * (ak - anchor[1]))
                bk = bk - eta * (gb + proximal * (bk - anchor[2]))
                dk = dk + step
            results.append((m, ak, bk, dk))
        server = average([item[0] for item in results])
        a, b, alpha = (sum(item[i] for item in results) / len(results) for i in (1, 2, 3))
    return {
        "x": torch.cat([flat(server), a[None], b[None]]), "alpha": alpha, "buffers": flat_buffers(server),
        "anchor": torch.cat([anchor[0], anchor[1][None], anchor[2][None]]),
    }  # fmt: skip


def coda_plus(world: World, **params: Any) -> dict[str, Tensor]:
    return coda(world, restart_samples=0, **params)


def codasca(
    world: World, lr: float, lr_dual: float, proximal: float, score: str, dual_step: str, server_lr: float,
    variates: str, anchor: str,
) -> dict[str, Tensor]:  # fmt: skip
    """codasca, Algorithms 3 and 4, with the control variates of equation (8): from the path, not from the gradients.

    z is (w, a, b, alpha) in one vector, and the signs of the ascent are in the step sizes.
    """
    n, server, zero = len(world.clients), world.module, torch.zeros(3)
    z = torch.cat([flat(server), zero])
    centre = z[:-1]
    c, c_own, path = torch.zeros_like(z), [torch.zeros_like(z) for _ in range(n)], []
    used = torch.ones_like(z)
    if variates != "both":
        used[-1] = float(variates == "dual")
        used[:-1] = float(variates == "primal")
    for r in range(world.rounds):
        if r in world.stages:
            centre, path = (z[:-1] if anchor == "last" else sum(path) / len(path)), []
        eta = world.decay(r) * torch.full_like(z, lr)
        eta[-1] = -world.decay(r) * lr_dual
        chosen, locals_, ends, deltas = world.participants(r), [], [], []
        for k in chosen:
            m, zk = copy.deepcopy(server), z
            work = world.round_batches(k, r)
            for batch in work:
                a, b, alpha = zk[-3], zk[-2], zk[-1]
                gw, ga, gb, gd = minimax(world, m, a, b, alpha, batch, score)
                g = torch.cat([gw, ga[None], gb[None], dual(gd, a, b, alpha, dual_step)[None]])
                g[:-1] += proximal * (zk[:-1] - centre)
                zk = zk - eta * (g - c_own[k] + c)
                set_flat(m, zk[:-3])
            new = used * (c_own[k] - c + (z - zk) / (len(work) * eta))
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
    return {
        "x": z[:-1], "alpha": z[-1], "anchor": centre, "c": c[kept], "c_own": torch.stack(c_own)[:, kept],
        "buffers": flat_buffers(server),
    }  # fmt: skip


def local_sgdam(
    world: World, lr: float, lr_dual: float, beta_x: float, beta_y: float, score: str, dual_step: str
) -> dict[str, Tensor]:
    n = len(world.clients)
    zero = torch.zeros(())
    states: list[dict[str, Any]] = []
    for k in range(n):
        m = copy.deepcopy(world.module)
        start = world.first(k, "first batches")
        gw, ga, gb, gd = minimax(world, copy.deepcopy(m), zero, zero, zero, start, score)
        gd = dual(gd, zero, zero, zero, dual_step)
        states.append(
            {"module": m, "a": zero, "b": zero, "alpha": zero, "uw": gw, "ua": ga, "ub": gb, "v": gd}
        )
    for r in range(world.rounds):
        eta, eta_dual = world.decay(r) * lr, world.decay(r) * lr_dual
        for k, s in enumerate(states):
            for batch in world.round_batches(k, r):
                set_flat(s["module"], flat(s["module"]) - eta * s["uw"])
                s["a"], s["b"] = s["a"] - eta * s["ua"], s["b"] - eta * s["ub"]
                s["alpha"] = s["alpha"] + eta_dual * s["v"]
                gw, ga, gb, gd = minimax(world, s["module"], s["a"], s["b"], s["alpha"], batch, score)
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
    alpha_h: float, rho: float, hvp: str,
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
        qw, qa, qb, qd = minimax(world, s["h"], s["ha"], s["hb"], s["alpha"], zeta, score)
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
        s: dict[str, Any] = {"a": zero, "b": zero, "alpha": zero, "ha": zero, "hb": zero}
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
                s["alpha"] = s["alpha"] + eta_dual * s["v"]
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


# ---- baselines of the field -----------------------------------------------------------------------------------------


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
