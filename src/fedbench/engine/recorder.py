"""The records of a run: a row per evaluation, losses, times and costs: floats sent and samples drawn."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from torch import Tensor

from fedbench import metric_table
from fedbench.engine.evaluator import Evaluator
from fedbench.engine.execution import Outcome
from fedbench.errors import UserError, unknown
from fedbench.method import FederatedMethod
from fedbench.problem import Charges, State
from fedbench.spec import TrainSpec


@dataclass
class Ledger:
    """The costs so far: floats per client (totals divided by the number of clients), samples of all clients.

    Attributes:
        up: floats sent to the server.
        down: floats received from it.
        buffers: batch-norm statistics sent to the server (as many come back).
        samples: drawn for steps, counted at each draw; inner samples and the first batch of a method count too.
        forward: further samples that are only scored, without a gradient.
    """

    up: float = 0.0
    down: float = 0.0
    buffers: float = 0.0
    samples: int = 0
    forward: int = 0

    @property
    def costs(self) -> dict[str, float]:
        """What was spent, by the columns of the curve."""
        return {
            "samples": self.samples,
            "samples_forward": self.forward,
            "floats_up": self.up,
            "floats_down": self.down,
            "floats_buffers": self.buffers,
        }

    def add_round(
        self,
        method: FederatedMethod,
        server: Mapping[str, Tensor],
        clients: Mapping[str, Tensor],
        n_clients: int,
    ) -> None:
        """Count one round: ``server`` as it was sent, ``clients`` [K, ...] as they came back, joined if gathered."""
        count = len(clients[method.averaged[0]])
        share = count / n_clients
        self.up += share * sum(clients[name][0].numel() for name in (*method.averaged, *method.uploaded))
        self.up += sum(clients[name].numel() for name in method.gathered) / n_clients
        self.down += share * sum(server[name].numel() for name in (*method.averaged, *method.broadcast))
        self.buffers += share * sum(clients[name][0].numel() for name in method.running if name in clients)

    def add_charges(self, charges: Charges, n_clients: int) -> None:
        """Count and clear what a method charged besides its averaged tensors."""
        self.up += charges.up / n_clients
        self.down += charges.down / n_clients
        self.forward += charges.forward
        charges.up = charges.down = charges.forward = 0


class Recorder:
    """Collects the measurements of a run while it trains.

    Attributes:
        ledger: its costs so far.
        curve: one row per evaluation.
        clients: one row per evaluation and traced quantity of the clients.
        seconds: of training and evaluation, earlier sessions of a resumed run included.
        kept: with ``keep``, the number, parameters and statistics of the row that would be reported now.
    """

    def __init__(
        self, method: FederatedMethod, evaluator: Evaluator, train: TrainSpec, keep: bool = False
    ) -> None:
        self._method, self._evaluator, self._keep = method, evaluator, keep
        self.kept: tuple[int, Tensor, Tensor | None] | None = None
        self._period, self._select = train.period, train.select
        self.ledger = Ledger()
        self.curve, self.clients = list[dict[str, float]](), list[dict[str, float | str]]()
        self.seconds, self._evaluation_seconds, self._curve_seconds = 0.0, list[float](), list[float]()
        self._loss_sum, self._loss_count = 0.0, 0
        self._begun, self._before = time.perf_counter(), 0.0

    def start(self) -> None:
        """Start the clock of this session."""
        self._begun, self._before = time.perf_counter(), self.seconds

    def tick(self) -> float:
        """Take the time and return the seconds since the start of this session."""
        passed = time.perf_counter() - self._begun
        self.seconds = self._before + passed
        return passed

    def trained(self, losses: Tensor) -> None:
        """Count clients that have trained, by their mean losses [K]."""
        self._loss_sum += float(losses.sum())
        self._loss_count += len(losses)

    def evaluate(self, round_index: int, server: State) -> None:
        """Append a row to the curve: the server's state after ``round_index`` rounds."""
        begun = time.perf_counter()
        self.tick()
        self._curve_seconds.append(self.seconds - sum(self._evaluation_seconds))
        row: dict[str, float] = {
            "iteration": round_index * (self._period or 1),
            "round": round_index,
            **self.ledger.costs,
            "train_loss": self._loss_sum / self._loss_count if self._loss_count else float("nan"),
        }
        for suffix, (x, buffers) in self._method.points(server).items():
            row |= self._evaluator.metrics(x, buffers, suffix)
        told = self._method.report(server)
        if taken := row.keys() & told.keys():
            where = f"{type(self._method).__module__}: report"
            raise UserError(
                f"{where} has to name numbers of its own, not {min(taken)!r}, which every run measures"
            )
        row |= told
        for name, values in self._method.traces(server).items():
            by_client = {f"client{client}": value for client, value in enumerate(values.tolist())}
            self.clients.append({"round": round_index, "quantity": name, **by_client})
        self._loss_sum, self._loss_count = 0.0, 0
        if not self.curve:
            self._check_selectable(row)
        # a checkpoint takes no numbers of numpy's
        row = {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        self.curve.append(row)
        if self._keep and self._reported() is row:
            x, buffers = next(iter(self._method.points(server).values()))
            self.kept = len(self.curve) - 1, x.clone(), None if buffers is None else buffers.clone()
        self._evaluation_seconds.append(time.perf_counter() - begun)

    def outcome(self, final: dict[str, float], diverged: str = "") -> Outcome:
        """Return the outcome of the run, or why it ``diverged``.

        It holds the reported row and ``final`` metrics. Costs are always those of all rounds, as all are trained
        before the best row is known.
        """
        self.tick()
        metrics = self._reported() | self.ledger.costs | final if self.curve and not diverged else {}
        status = "diverged" if diverged else "finished"
        return Outcome(
            status, diverged, self.curve, self.clients, metrics, self.seconds, self._evaluation_seconds,
            self._curve_seconds,
        )  # fmt: skip

    def _reported(self) -> dict[str, float]:
        """Return the last row, or the first of those that validation finds best."""
        if self._select is None:
            return self.curve[-1]
        name, sign = self._select, metric_table.sign(self._select)
        values = [sign * row[name] for row in self.curve]
        return self.curve[max(range(len(values)), key=lambda at: (values[at], -at))]

    def _check_selectable(self, row: dict[str, float]) -> None:
        """Raise UserError, before training, where nothing could be selected."""
        name = self._select
        if name is None:
            return
        if name not in row:
            raise unknown(
                "metric on validation data (train.select)",
                name,
                [key for key in row if key.startswith("val_")],
            )
        if math.isnan(row[name]):
            raise UserError(
                f"train.select: {name} is undefined on this validation part, as if it held one class only"
            )

    def reported_point(self) -> tuple[Tensor, Tensor | None] | None:
        """Return the parameters and statistics of the reported row; None if they were not kept."""
        if self.kept is None or self.curve[self.kept[0]] is not self._reported():
            return None
        return self.kept[1:]

    def dump(self) -> dict[str, Any]:
        """Return the state that a resumed run continues to record from."""
        kept = {} if self.kept is None else {"kept": self.kept}
        return kept | {
            "ledger": astuple(self.ledger),
            "curve": self.curve,
            "clients": self.clients,
            "seconds": self.seconds,
            "evaluation_seconds": self._evaluation_seconds,
            "curve_seconds": self._curve_seconds,
            "loss": [self._loss_sum, self._loss_count],
        }

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.ledger = Ledger(*dumped["ledger"])
        self.curve, self.clients = dumped["curve"], dumped["clients"]
        self.seconds, self._evaluation_seconds = dumped["seconds"], dumped["evaluation_seconds"]
        self._curve_seconds = dumped["curve_seconds"]
        self._loss_sum, self._loss_count = dumped["loss"]
        self.kept = dumped.get("kept")
