"""CODASCA (codasca, Algorithms 3 and 4): CODA+ with control variates on the primal and the dual variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedbench.algorithms import coda_plus
from fedbench.method import average, one_of
from fedbench.problem import Batch, Problem, State
from fedbench.ranges import Positive

VARIATES = ("both", "primal", "dual")
ANCHORS = ("last", "average", "own_average")


@dataclass(frozen=True)
class Method(coda_plus.Method):
    """With the gradients g of CODA+'s subproblem, the proximal term included, a local step is

        x <- x - lr (g_x - c_k_x + c_x),      alpha <- alpha + lr_dual (g_alpha - c_k_alpha + c_alpha)

    and after the round's steps

        c_k <- mean of the round's g,         c <- c + 1/N sum over participants of (new c_k - old c_k),
        x <- x + server_lr (mean of x_k - x), alpha likewise.

    Equation 8 gives the same c_k, but as a difference of two models that are nearly equal; in single precision the
    difference would be mostly rounding error.

    Attributes:
        server_lr: global step size; 1 gives plain averages.
        variates: which variables have control variates: ``both``, only ``primal`` or only ``dual``.
        anchor: the next stage's anchor: the ``last`` averaged model, the ``average`` of the stage's averaged models as
            in the theory, or ``own_average``, as in the authors' program (ICML2021_FedDeepAUC_CODASCA 050b00c,
            main_codasca_cifar.py 126, 136-137, 220-231, whose sum over T steps also holds the point before the first
            step). ``own_average`` is each client's average of its local iterates in the last stage in which it took
            part; before such a stage, the initial model.
    """

    server_lr: Positive
    variates: str
    anchor: str

    own: ClassVar[tuple[str, ...]] = ("c_own", "anchor_own", "path_own", "passed_own", "stage_own")
    broadcast: ClassVar[tuple[str, ...]] = ("c",)
    uploaded: ClassVar[tuple[str, ...]] = ("c_change",)
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "variates", self.variates, VARIATES)
        one_of(self.name, "anchor", self.anchor, ANCHORS)
        if self.anchor != "own_average":  # the other tensors are those of a client's own anchor
            object.__setattr__(self, "own", ("c_own",))

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start as CODA+ does, with a zero global control variate."""
        server = super().init(problem, w)
        server |= {"c": self._controlled(torch.zeros_like(server["x"]), torch.zeros_like(server["alpha"]))}
        if self.anchor == "average":
            server |= self.no_path(server["x"])
        if self.anchor == "own_average":
            server |= {"stage": w.new_zeros(())}
        return server

    def init_own(self, problem: Problem, server: State) -> State:
        """Start with a zero control variate; with ``own_average``, the initial model is the client's anchor."""
        kept = {"c_own": torch.zeros_like(server["c"])}
        if self.anchor != "own_average":
            return kept
        empty = {"path_own": torch.zeros_like(server["x"]), "passed_own": torch.zeros_like(server["stage"])}
        return kept | empty | {"anchor_own": server["x"], "stage_own": server["stage"]}

    def begin(self, problem: Problem, state: State) -> State:
        """Begin a round: compute its correction c - c_k and empty the sums of gradients."""
        if self.anchor == "own_average":
            state = state | self._anchored(state)
        zero = {"sum_x": torch.zeros_like(state["x"]), "sum_alpha": torch.zeros_like(state["alpha"])}
        x, alpha = self._parts(state["c"] - state["c_own"], zero["sum_x"], zero["sum_alpha"])
        return state | zero | {"shift_x": x, "shift_alpha": alpha, "steps": zero["sum_alpha"]}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one corrected step."""
        g = self.gradient(problem, state, batches[0])
        moved = self.moved(state, g.x + state["shift_x"], g.alpha + state["shift_alpha"], decay)
        if self.anchor == "own_average":
            moved |= {"path_own": state["path_own"] + moved["x"], "passed_own": state["passed_own"] + 1}
        sums = {"sum_x": state["sum_x"] + g.x, "sum_alpha": state["sum_alpha"] + g.alpha}
        return moved | sums | {"steps": state["steps"] + 1, "loss": g.loss}

    def end(self, problem: Problem, state: State) -> State:
        """Compute the client's new control variate."""
        steps = state["steps"]
        new = self._controlled(state["sum_x"] / steps[:, None], state["sum_alpha"] / steps)
        return state | {"c_own": new, "c_change": new - state["c_own"]}

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Move the model, the dual variable and the global control variate."""
        mean = self.mean(clients)
        # lerp: with a server_lr of 1 it is the mean to the last bit, as x + 1 (mean - x) is not
        moved = {name: torch.lerp(server[name], mean[name], self.server_lr) for name in self.averaged}
        change = average(clients, clients["c_change"])
        moved |= {"c": server["c"] + problem.share(participants) * change}
        if self.anchor == "average":
            moved |= self.passed(server, moved["x"])
        return server | mean | moved | self.handed_out(problem, server, participants)

    def new_stage(self, problem: Problem, server: State) -> State:
        """Move the anchor, or let each client move its own."""
        if self.anchor == "own_average":
            return server | {"stage": server["stage"] + 1}  # no anchor is sent: ``holders`` stays
        moved = super().new_stage(problem, server)
        if self.anchor == "last":
            return moved
        return moved | self.no_path(server["x"]) | {"anchor": server["path"] / server["passed"]}

    def _anchored(self, state: State) -> State:
        """Return the clients' own anchors; an anchor moves if a stage has begun since its client's last round."""
        path, steps = state["path_own"], state["passed_own"]
        begins = state["stage"] != state["stage_own"]
        moves = (begins & (steps > 0))[:, None]
        anchor = torch.where(moves, path / steps.clamp(min=1)[:, None], state["anchor_own"])
        empty = {"path_own": path.masked_fill(begins[:, None], 0), "passed_own": steps.masked_fill(begins, 0)}
        return empty | {"anchor": anchor, "anchor_own": anchor, "stage_own": state["stage"]}

    def _controlled(self, x: Tensor, alpha: Tensor) -> Tensor:
        """Join the variables that have control variates: [..., d+2] and [...] -> [..., d+3], or one of the two."""
        chosen = {"both": [x, alpha[..., None]], "primal": [x], "dual": [alpha[..., None]]}
        return torch.cat(chosen[self.variates], -1)

    def _parts(self, c: Tensor, no_x: Tensor, no_alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Split what ``_controlled`` joined; a variable without control variates gets zeros."""
        x = no_x if self.variates == "dual" else c[..., : no_x.shape[-1]]
        return x, (no_alpha if self.variates == "primal" else c[..., -1])
