"""CLIMB (Shen, Cervino, Hassani, Ribeiro, ICLR 2022): dual variables weigh the clients of a base solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedbench.method import FederatedMethod, one_of
from fedbench.problem import Problem, State, buffers_of
from fedbench.ranges import Count, NotNegative
from fedbench.task import LabelledTask, Task

if TYPE_CHECKING:
    Base = FederatedMethod
else:
    Base = object

SCALES = ("code", "paper")
LOSSES = ("clean", "augmented")


class Climb(Base):
    """climb, Algorithm 1: minimise the mean loss f subject to f_i - f <= eps for every client i.

        w_i = 1 + lambda_i - mean(lambda)                                       (sums to N; can be negative)
        primal: n_p rounds of the base solver, client i's change of the model weighted by w_i
        dual:   lambda_i <- clip(lambda_i + eta_D (f_i - f - eps), 0, dual_max)

    f_i is client i's mean cross-entropy at the new model; clients send the server f_i and nothing else of their data.
    The class is mixed in before a base solver, whose server step then averages weighted changes.

    Attributes:
        dual_lr: step size of the dual variables lambda, eta_D.
        tolerance: how far a client's loss may exceed the mean loss, eps.
        dual_scale: ``paper`` takes eta_D and f_i as above. ``code`` follows the authors' program (c841a4d,
            core/imbalance_fl.py 24): f_i is the sum over the mini-batches of an epoch (here their number times the
            mean, where an incomplete mini-batch counts by its samples), and the step size is eta_D / N.
        dual_losses: the images on which f_i is computed: unchanged (``clean``), or augmented as in training, anew at
            each dual step (``augmented``). The paper says neither; the authors' program augments on CIFAR
            (shenzebang/Federated-Learning-Pytorch c841a4d, utils/general_utils.py 80-98). Without ``train.augment``
            both are the same.
        dual_every: rounds between dual steps, n_p.
        dual_max: upper bound of lambda; the authors' program has 100 (line 25) and later 5 (1599c17).
    """

    dual_lr: NotNegative
    tolerance: NotNegative
    dual_scale: str
    dual_every: Count
    dual_max: NotNegative
    dual_losses: str = "clean"

    task: ClassVar[type[Task]] = LabelledTask
    weighs: ClassVar[bool] = False  # the duals do

    def __post_init__(self) -> None:
        one_of("climb", "dual_scale", self.dual_scale, SCALES)
        one_of("climb", "dual_losses", self.dual_losses, LOSSES)

    def init(self, problem: Problem, w: Tensor) -> State:
        """Start with lambda = 0."""
        return super().init(problem, w) | {
            "duals": w.new_zeros(problem.n_clients),
            "client_losses": w.new_full((problem.n_clients,), float("nan")),
        }

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Let the base solver aggregate weighted changes; every ``dual_every`` rounds make a dual step."""
        extra = (weights(server["duals"])[participants] - 1)[:, None]
        # x_i + (w_i - 1)(x_i - x) is the model with client i's change weighted, and exactly x_i where w_i = 1
        weighted = torch.addcmul(clients["x"], extra, clients["x"] - server["x"])
        server = super().server(problem, server, clients | {"x": weighted}, participants, round_index)
        problem.charges.add(down=len(participants))
        if (round_index + 1) % self.dual_every:
            return server
        assert problem.client_losses is not None
        augmented = round_index if self.dual_losses == "augmented" else None
        losses = problem.client_losses(server["x"], buffers_of(server), augmented)
        # The next round's participants receive this model anyway; the others receive it for its loss alone.
        absent = problem.n_clients - len(participants)
        problem.charges.add(up=problem.n_clients, down=absent * len(server["x"]))
        assert problem.batches is not None
        return server | {
            "duals": self.dual_step(server["duals"], losses, problem.batches()),
            "client_losses": losses,
        }

    def dual_step(self, duals: Tensor, losses: Tensor, batches: Tensor) -> Tensor:
        """Return lambda after one projected ascent step, [N], given the clients' losses and batches an epoch, [N]."""
        step = self.dual_lr
        if self.dual_scale == "code":
            step, losses = step / len(duals), losses * batches
        return (duals + step * (losses - losses.mean() - self.tolerance)).clamp(0, self.dual_max)

    def report(self, server: State) -> dict[str, float]:
        """Return the mean and the maximum of the duals, the number of duals at the upper bound, and the number of
        negative client weights. For a dual at its bound, the bound decides and not the constraint.
        """
        duals = server["duals"]
        return {
            "dual_mean": float(duals.mean()),
            "dual_max": float(duals.max()),
            "duals_at_bound": float((duals >= self.dual_max).sum()),
            "negative_weights": float((weights(duals) < 0).sum()),
        }

    def traces(self, server: State) -> dict[str, Tensor]:
        """Return the dual and the loss f_i of every client, [N] each."""
        return {"dual": server["duals"], "loss": server["client_losses"]}


def weights(duals: Tensor) -> Tensor:
    """Return the client weights 1 + lambda_i - mean(lambda), [N]."""
    return 1 + duals - duals.mean()
