"""CODA (Guo et al., ICML 2020; "CoDA" in localscgdam): CODA+ with a restart of the dual variable at each stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import coda_plus
from fedbench.algorithms._minimax import as_scores
from fedbench.errors import UserError
from fedbench.method import one_of
from fedbench.problem import Problem, State
from fedbench.ranges import NumberFrom0

ASCENTS = ("each_step", "stage")
STARTS = ("last", "average")


@dataclass(frozen=True)
class Method(coda_plus.Method):
    """Steps as in CODA+. At the end of a stage (each step-size decay) the anchor moves to x, and alpha restarts as the
    mean score of negatives minus the mean score of positives. The means are over one larger batch of every client
    together; a client's samples count by the client's weight in averages.

    Attributes:
        restart_samples: samples of each client in the restart of alpha; 0 leaves alpha as it is (CODA+).
        ascent: ``each_step``: alpha ascends in each step (the paper). ``stage``: alpha is constant within a stage, as
            in the authors' program, which binds a local name in place of ascending (ZhishuaiGuo/DistributedAUC 30f052a,
            imagenet/main.py 63-64). Alpha then restarts before the first stage, too, and before stage s = 1, 2, ... on
            3^s ``restart_samples``; the program takes 3^s batches (165-197).
        stage_start: the x and the anchor at the beginning of a stage: the ``last`` averaged model, or the ``average``
            of the averaged models of the stage before (imagenet/main.py 148-152; its lines 333-339 sum a machine's
            local iterates, of w alone).
    """

    restart_samples: NumberFrom0
    ascent: str = "each_step"
    stage_start: str = "last"

    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "ascent", self.ascent, ASCENTS)
        one_of(self.name, "stage_start", self.stage_start, STARTS)
        if self.ascent == "stage" and not self.restart_samples:
            raise UserError(
                "method 'coda': ascent 'stage' sets alpha by restart_samples, which has to be above 0"
            )

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start as CODA+ does, before the first stage."""
        server = super().init(problem, w)
        if self.ascent == "stage":
            server |= {"stage": w.new_zeros(())}
        return server | (self.no_path(server["x"]) if self.stage_start == "average" else {})

    def before_training(self, problem: Problem, server: State) -> State:
        """Restart alpha for the first stage if alpha is constant within stages."""
        return self._restarted(problem, server) if self.ascent == "stage" else server

    def moved(self, state: State, down: Tensor, up: Tensor, decay: float) -> State:
        """Descend in x, and ascend in alpha unless alpha is constant within stages."""
        return super().moved(state, down, up if self.ascent == "each_step" else torch.zeros_like(up), decay)

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Average."""
        new = super().server(problem, server, clients, participants, round_index)
        if self.ascent == "stage":
            new |= {"alpha": server["alpha"]}  # a mean of equal numbers is rounded
        return new | (self.passed(server, new["x"]) if self.stage_start == "average" else {})

    def new_stage(self, problem: Problem, server: State) -> State:
        """Move the anchor and restart alpha."""
        if self.stage_start == "average":
            server = server | {"x": server["path"] / server["passed"]} | self.no_path(server["x"])
        server = super().new_stage(problem, server)
        return self._restarted(problem, server) if self.restart_samples else server

    def _restarted(self, problem: Problem, server: State) -> State:
        assert problem.draw is not None
        wanted = self.restart_samples
        if self.ascent == "stage":
            server = server | {"stage": server["stage"] + 1}
            wanted *= 3 ** int(server["stage"])
        sums, counts = server["x"].new_zeros(2), server["x"].new_zeros(2)
        w = server["x"][None, : problem.net.d]
        statistics = None if "buffers" not in server else server["buffers"][None]
        for client in range(problem.n_clients):
            weight = 1 if problem.weights is None else float(problem.weights[client])
            batch = problem.draw(client, wanted)
            with torch.no_grad():
                scores = as_scores(problem.net.scores(w, batch.inputs, statistics, train=False), self.score)
            for label in (0, 1):
                mine = scores[batch.labels == label]
                sums[label] += weight * mine.sum()
                counts[label] += weight * len(mine)
        problem.charges.add(up=4 * problem.n_clients, down=problem.n_clients)
        if not counts.all():
            return server  # of one class no client drew a sample, so that its mean is undefined
        means = sums / counts
        return server | {"alpha": self.bounded(means[0] - means[1])}
