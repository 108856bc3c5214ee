"""AUC maximisation on pairs: FeDXL1 (Guo et al., ICML 2023) and its cyclic form (cycp, Algorithms 3 and 4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedbench.algorithms._minimax import SCORES, as_scores
from fedbench.method import FederatedMethod, one_of
from fedbench.objectives.pairwise import PairLoss, active_passive
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import Count, Positive

log = logging.getLogger(__name__)

POOLS = ("cycle", "round")
SHARES = ("client", "count")
HALVES = ("as_algorithm", "equal")
SIGNS = {"positives": 1, "negatives": 0}


@dataclass(frozen=True)
class Method(FederatedMethod):
    """A pair is a positive and a negative sample, which may lie on two clients. The active scores s of a pair are those
    of the client's own batch; the passive scores, p of positives and n of negatives, are constants from pools that the
    server has collected:

        x <- x - lr grad [ mean psi(s_i - n_j) over positives i + mean psi(p_j - s_i) over negatives i ].

    The server averages x. It joins the active scores that clients send into new pools, which replace the old ones in
    the next cycle (CyCp-Pairwise: a client's group comes once a cycle) or in the next round (RS-Pairwise). For the
    first pools, the clients of one cycle or round score samples at the initial model. Since nothing is trained before,
    this equals the first epoch of Algorithm 3, which only collects scores. A pool that would become empty is kept.

    In Algorithm 3 all clients send equally many scores of each label. Here a client with fewer samples of a label than
    a batch takes sends fewer scores. With ``share: client`` the server then repeats these scores until they are as many
    as the largest number that a client sent, so that clients weigh equally in the passive scores, as in the active
    ones.

    Attributes:
        lr: step size.
        loss: psi, one of ``square``, ``squared_hinge``, ``logistic``, ``sigmoid``, ``barrier_hinge``, ``q_norm_hinge``
            (cycp, Table 10). The next four are its parameters; a loss ignores the ones that it does not have.
        margin: m of ``square``, ``squared_hinge``, ``barrier_hinge`` and ``q_norm_hinge``.
        temperature: lambda of ``sigmoid`` and 1/s of ``logistic``, above 0.
        slope: tau of ``barrier_hinge``.
        q: exponent of ``q_norm_hinge``, above 1.
        score: the scores of the loss: ``sigmoid`` of the logit, or the ``logit``.
        passive: passive scores of each label in a step, drawn without replacement within a client's round; if a pool
            has too few scores for that, all of them are taken in turn.
        opening: samples of each client that are scored for the first pools.
        pool: the age of passive scores: from the last ``cycle`` or the last ``round``. FeDXL's program has first in,
            first out (a3b2f29, FeDXL/main.py 216-217, 305-311), and draws with replacement (344, 358).
        share: a client's share of a pool: equal for all clients (``client``), or by the ``count`` of its scores.
        halves: the weights of the two means. A client without positives (or negatives) adds nothing to the mean over
            them. ``as_algorithm``: if N+ of N clients have positives and all have negatives, the averaged step is along
            (N+/N) D1 + D2. ``equal``: each client's mean is multiplied by N over the number of clients that have such
            samples; the averaged step is along D1 + D2, as with 16 + 16 samples in each batch (``train.positives``).
    """

    lr: Positive
    loss: str
    margin: Positive
    temperature: float
    slope: Positive
    q: float
    score: str
    passive: Count
    opening: Count
    pool: str
    share: str
    halves: str = "as_algorithm"

    gathered: ClassVar[tuple[str, ...]] = tuple(SIGNS)
    binary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("pairwise", "score", self.score, SCORES)
        one_of("pairwise", "pool", self.pool, POOLS)
        one_of("pairwise", "share", self.share, SHARES)
        one_of("pairwise", "halves", self.halves, HALVES)
        _ = self.psi

    @property
    def psi(self) -> PairLoss:
        """The loss of a pair."""
        return PairLoss(self.loss, self.margin, self.temperature, self.slope, self.q)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with empty pools: ``pool`` in use, ``next`` in collection, with each client's count of scores in it."""
        pools = {f"{kind}_{sign}": w.new_empty(0) for kind in ("pool", "next") for sign in SIGNS}
        counts = {f"counts_{sign}": w.new_empty(0, dtype=torch.int64) for sign in SIGNS}
        return {"x": w, "kept": w.new_zeros(())} | pools | counts

    def before_training(self, problem: Problem, server: State) -> State:
        """Fill the first pools: the clients of the first cycle or round score samples at the initial model."""
        assert problem.participants is not None and problem.draw is not None
        rounds = range(problem.cycle.length if self.pool == "cycle" else 1)
        clients = {client: None for index in rounds for client in problem.participants(index)}
        scored: dict[str, list[Tensor]] = {sign: [] for sign in SIGNS}
        for client in clients:
            batch = problem.draw(client, self.opening, "opening")
            with torch.no_grad():
                scores = as_scores(problem.scores(server["x"][None], batch, None), self.score)
            for sign, label in SIGNS.items():
                scored[sign].append(scores[batch.labels == label])
        problem.charges.add(
            up=sum(len(part) for parts in scored.values() for part in parts),
            down=len(clients) * len(server["x"]),
        )
        pools = {f"pool_{sign}": self._shared(parts) for sign, parts in scored.items()}
        for sign in SIGNS:
            if not len(pools[f"pool_{sign}"]):
                log.warning(
                    "pairwise: no %s among the %d samples that each of %d clients scored for the first pools",
                    *(sign, self.opening, len(clients)),
                )
        return server | pools

    def _shared(self, parts: Sequence[Tensor]) -> Tensor:
        """Join the scores of clients, one part each, into a pool, levelled if all clients are to have equal shares."""
        return torch.cat(levelled(parts) if self.share == "client" else list(parts))

    def begin(self, problem: Problem, state: State) -> State:
        """Give each client its passive scores of the round, in the order in which its steps use them."""
        passive = {f"passive_{sign}": self._received(problem, state, sign) for sign in SIGNS}
        sent = {sign: state["x"].new_empty(len(state["x"]), 0) for sign in SIGNS}
        return state | passive | sent | {"made": torch.zeros_like(state["client"])}

    def _received(self, problem: Problem, state: State, sign: str) -> Tensor:
        """Draw passive scores [K, n] from a pool for each client without replacement: enough for its round, or all."""
        pool = state[f"pool_{sign}"][0]
        orders = [
            problem.stream(f"passive {sign}", round_index, client).choice(
                len(pool), self._sent(problem, pool), replace=False
            )
            for client, round_index in zip(state["client"].tolist(), state["round"].tolist(), strict=True)
        ]
        return pool[torch.from_numpy(np.stack(orders)).to(pool.device)]

    def _sent(self, problem: Problem, pool: Tensor) -> int:
        """Return the number of scores that a client receives from a pool."""
        return len(pool) if problem.period is None else min(len(pool), problem.period * self.passive)

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one step with the next passive scores, and keep the batch's scores to send."""
        batch = batches[0]
        leaf = problem.net.leaf(state["x"])
        scores = as_scores(problem.scores(leaf, batch, buffers_of(state)), self.score)
        now = scores.detach()
        valid = torch.ones_like(now, dtype=torch.bool) if batch.weight is None else batch.weight > 0
        passive = {sign: self._turn(state, sign) for sign in SIGNS}
        pairs = active_passive(
            now,
            batch.labels,
            valid,
            passive["positives"],
            passive["negatives"],
            self.psi,
            self._weights(problem),
        )
        (gradient,) = leaf.gradient((pairs.slope * scores).sum(1))
        gradient = problem.regularised(gradient, state["x"])
        sent = {
            sign: torch.cat([state[sign], now.masked_fill(~valid | (batch.labels != label), torch.nan)], 1)
            for sign, label in SIGNS.items()
        }
        x = torch.add(state["x"], gradient, alpha=-decay * self.lr)
        return state | sent | {"x": x, "made": state["made"] + 1, "loss": pairs.loss}

    def _weights(self, problem: Problem) -> Sequence[float]:
        """Return the factors of the means over active negatives and over active positives."""
        if self.halves == "as_algorithm":
            return (1.0, 1.0)
        assert problem.class_counts is not None
        clients = (problem.class_counts() > 0).sum(0).clamp_min(1)
        weights: list[float] = (problem.n_clients / clients).tolist()
        return weights

    def _turn(self, state: State, sign: str) -> Tensor:
        """Return a step's passive scores [K, passive]; after the last received score the first follows again."""
        received = state[f"passive_{sign}"]
        if not received.shape[1]:
            return received
        at = state["made"][:, None] * self.passive + torch.arange(self.passive, device=received.device)
        return received.gather(1, at % received.shape[1])

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average and collect the scores that were sent; at the end of a cycle (or round) they become the pools."""
        new = server | self.mean(clients)
        for sign in SIGNS:
            pool, following = server[f"pool_{sign}"], torch.cat([server[f"next_{sign}"], clients[sign]])
            counts = torch.cat([server[f"counts_{sign}"], clients[f"{sign}_counts"]])
            problem.charges.add(down=len(participants) * self._sent(problem, pool))
            if self.pool == "round" or problem.cycle.ends:
                if len(following):
                    pool = self._shared(torch.split(following, counts.tolist()))
                    following, counts = following[:0], counts[:0]
                else:
                    self._say_once(new, sign, round_index)
                    new |= {"kept": new["kept"] + 1}
            new |= {f"pool_{sign}": pool, f"next_{sign}": following, f"counts_{sign}": counts}
        return new

    def _say_once(self, server: State, sign: str, round_index: int) -> None:
        """Warn when a pool is kept for the first time in a run."""
        if not server["kept"]:
            known = len(server[f"pool_{sign}"])
            log.warning(
                "pairwise: no client sent a score of %s up to round %d: the %d that are known stay in use",
                *(sign, round_index, known),
            )

    def report(self, server: State) -> dict[str, float]:
        """Return the sizes of the pools in use (an empty pool makes no pairs), and how often a pool was kept."""
        sizes = {f"pool_{sign}": float(len(server[f"pool_{sign}"])) for sign in SIGNS}
        return sizes | {"pools_kept": float(server["kept"])}


def levelled(parts: Sequence[Tensor]) -> list[Tensor]:
    """Repeat the entries of each part evenly until every part is as long as the longest; empty parts stay empty."""
    longest = max(map(len, parts), default=0)
    places = [torch.arange(longest, device=part.device) * len(part) // longest for part in parts if len(part)]
    return [part[place] for part, place in zip(filter(len, parts), places, strict=True)] or list(parts)
