"""The round loop: who participates, which batches, when to synchronise."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedbench import net as network
from fedbench.algorithms._base import FederatedMethod, make
from fedbench.data.clients import Arrays, ClientData
from fedbench.engine import checkpoint
from fedbench.engine.evaluator import Evaluator
from fedbench.engine.ledger import Ledger
from fedbench.engine.outcome import Outcome, Progress, Stopped
from fedbench.engine.participation import participants
from fedbench.engine.problem import Batch, Problem, State
from fedbench.engine.schedule import Schedule
from fedbench.engine.streams import stream
from fedbench.engine.subnormal import flushed
from fedbench.specs import RunSpec

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 30.0
PURPOSES = ("batches", "inner batches")
"""Streams of a step's mini-batches: the first is the one all methods share."""


class Simulation:
    """One run. ``run()`` trains it to the end, from its checkpoint where there is one.

    Args:
        spec: the run.
        arrays: its data.
        device: where tensors live.
        client_chunk: clients stacked in one call, None for all. Changes speed, never results beyond rounding.
        checkpoint_path: where the checkpoint lives while the run is unfinished, None for no checkpoints.
        checkpoint_seconds: seconds between checkpoints; 0 writes one each round.
        on_round: called after each round.
        stop: asked after each round; when it says so, the run saves a checkpoint and raises :class:`Stopped`.
    """

    def __init__(
        self,
        spec: RunSpec,
        arrays: Arrays,
        device: torch.device,
        client_chunk: int | None = 1,
        checkpoint_path: Path | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        on_round: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.spec, self.device = spec, device
        self.method: FederatedMethod = make(spec.method, spec.params)
        self.data = ClientData(arrays, spec.train, spec.seed, device)
        outputs = 1 if arrays.n_classes == 2 else arrays.n_classes
        seed = int(stream(spec.seed, "initial weights").integers(2**31))
        net = network.build(spec.network.name, arrays.x_train.shape[1:], outputs, seed, spec.network.options)
        self.evaluator = Evaluator(net, arrays, self.data)
        self.problem = Problem(
            net, self.data.prior, self.data.n_classes, len(self.data.sizes), spec.train.weight_decay,
            spec.train.clip_norm, self._draw, self.data.auxiliary, self.evaluator.client_losses,
        )  # fmt: skip
        self.schedule = Schedule(spec.train, self.data)
        self.chunk = client_chunk
        self.checkpoint_path, self.checkpoint_seconds = checkpoint_path, checkpoint_seconds
        self.on_round, self.stop = on_round, stop
        self._insured = True  # whether the last checkpoint could be written

        self.round, self.samples = 0, 0
        self.ledger, self.curve = Ledger(), list[dict[str, float]]()
        self.clients = list[dict[str, float | str]]()
        self.seconds, self.evaluation_seconds = 0.0, list[float]()
        self.loss_sum, self.loss_count = 0.0, 0
        w = net.initial().to(device)
        self.server = self.method.init(self.problem, w)
        if net.n_buffers:
            self.server |= {name: net.initial_buffers().to(device) for name in self.method.running}
        start = self.method.init_own(self.problem, self.server)
        self.own = {
            name: tensor[None].expand(self.problem.n_clients, *tensor.shape).clone()
            for name, tensor in start.items()
        }

    def run(self) -> Outcome:
        """Train to the end or to divergence."""
        self._resume()
        begun, before = time.perf_counter(), self.seconds
        reason, final = "", dict[str, float]()
        try:
            final = self._train(begun, before)
        except FloatingPointError as error:
            reason = f"{error} in round {self.round} of {self.schedule.rounds}"
        self.seconds = before + time.perf_counter() - begun
        metrics = dict(self.curve[-1]) | final if self.curve and not reason else {}
        status = "diverged" if reason else "finished"
        return Outcome(
            status, reason, self.curve, self.clients, metrics, self.seconds, self.evaluation_seconds
        )

    def _train(self, begun: float, before: float) -> dict[str, float]:
        """Train all rounds that are left and return the final metrics that are no part of the curve.

        Raises:
            FloatingPointError: the run diverged.
            Stopped: it was told to.
        """
        begun_at, saved = self.round, begun
        final: dict[str, float] = {}
        if self.round == 0 and not self.curve:
            self._evaluate()
        while self.round < self.schedule.rounds:
            last = self.round == self.schedule.rounds - 1
            clients = self.train_round()
            self.seconds = before + time.perf_counter() - begun
            # Momenta and adapted models can break before the parameters do.
            sent = [
                self.server[name]
                for name in (*self.method.averaged, *self.method.running)
                if name in self.server
            ]
            if not all(bool(torch.isfinite(tensor.sum())) for tensor in sent):
                raise FloatingPointError("parameters became non-finite")
            if last:
                final = self.evaluator.spread(clients)
            del clients  # or two rounds' models would be held at a time
            if self.round in self.schedule.evaluated:
                self._evaluate()
            if self.on_round is not None:
                latest = self.curve[-1] if self.curve else {}
                self.on_round(
                    Progress(self.round, self.schedule.rounds, begun_at, time.perf_counter() - begun, latest)
                )
            if last:
                break
            stop = self.stop()
            due = stop or time.perf_counter() - saved >= self.checkpoint_seconds
            if self.checkpoint_path is not None and due:
                self._save()
                saved = time.perf_counter()
            if stop:
                raise Stopped(f"stopped after round {self.round} of {self.schedule.rounds}")
        return final

    @flushed()
    def train_round(self) -> State:
        """Train one round, aggregate, and return the participants' final states."""
        train = self.spec.train
        chosen = participants(train.participation, self.problem.n_clients, self.round, self.spec.seed)
        decay = self.schedule.decay(self.round)
        if self.round in self.schedule.stages:
            self.server = self.method.new_stage(self.problem, self.server)
        row = {client: index for index, client in enumerate(chosen)}
        clients: State = {}
        for chunk in self._chunks(chosen):
            rows = [row[client] for client in chunk]
            for name, tensor in self._train_chunk(chunk, decay).items():
                if name not in clients:
                    clients[name] = tensor.new_empty(len(chosen), *tensor.shape[1:])
                clients[name][rows] = tensor
        self.ledger.add_round(self.method, self.server, clients, self.problem.n_clients)
        self.server = self.method.server(self.problem, self.server, clients, chosen, self.round)
        self.ledger.add_charges(self.problem.charges, self.problem.n_clients)
        if self.own:
            place = torch.tensor(chosen, device=self.device)
            for name, tensor in self.own.items():
                tensor[place] = clients[name]
        self.round += 1
        return clients

    def _draw(self, client: int, n: int) -> Batch:
        """Draw samples of a client that no other round draws."""
        return self.data.draw(client, n, time=self.round)

    def _chunks(self, chosen: list[int]) -> list[list[int]]:
        """Divide a round's clients into those that are stacked.

        With batch-norm only clients of equal batches are: padding would enter the batch's statistics.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for client in chosen:
            shape = self.data.shape(client) if self.problem.net.n_buffers else ()
            groups.setdefault(shape, []).append(client)
        size = self.chunk or len(chosen)
        return [group[at : at + size] for group in groups.values() for at in range(0, len(group), size)]

    def _train_chunk(self, chosen: list[int], decay: float) -> State:
        """Train some clients of a round, stacked."""
        method, problem, n = self.method, self.problem, len(chosen)
        state = {name: tensor[None].expand(n, *tensor.shape) for name, tensor in self.server.items()}
        for name in method.running:
            if name in state:
                state[name] = state[name].clone()  # updated in place
        state |= {name: tensor[chosen] for name, tensor in self.own.items()}
        if self.round == 0:
            firsts = [self.data.first(chosen, f"first {name}") for name in PURPOSES[: method.batches]]
            state = method.first(problem, state, firsts)
        state = method.begin(problem, state)
        works = [self.data.work(chosen, self.round, purpose) for purpose in PURPOSES[: method.batches]]
        losses = torch.zeros(n, device=self.device)
        for step in range(works[0].steps):
            batches = [work.batch(step) for work in works]
            if works[0].unequal:
                active = works[0].active(step)
                state = self._masked_step(state, batches, decay, active)
                losses += torch.where(active, state["loss"], 0)
            else:
                state = method.step(problem, state, batches, decay)
                losses += state["loss"]
        state = method.end(problem, state)
        self.samples += sum(work.samples for work in works)
        self.loss_sum += float((losses / works[0].steps_of_each).sum())
        self.loss_count += n
        kept = {*method.averaged, *method.own, *method.uploaded, *method.running}
        return {name: tensor for name, tensor in state.items() if name in kept}

    def _masked_step(self, state: State, batches: list[Batch], decay: float, active: Tensor) -> State:
        """Make one step in which clients that have finished their epochs stand still."""
        still = {name: state[name].clone() for name in self.method.running if name in state}
        new = self.method.step(self.problem, state, batches, decay)
        result = {}
        for name, tensor in new.items():
            old = still.get(name, state.get(name))
            mask = active.view(-1, *[1] * (tensor.dim() - 1))
            result[name] = tensor if old is None else torch.where(mask, tensor, old)
        return result

    def _evaluate(self) -> None:
        """Append a row to the curve."""
        begun = time.perf_counter()
        row: dict[str, float] = {
            "iteration": self.round * self.spec.train.period if self.spec.train.period else self.round,
            "round": self.round,
            "samples": self.samples,
            "floats_up": self.ledger.up,
            "floats_down": self.ledger.down,
            "floats_buffers": self.ledger.buffers,
            "train_loss": self.loss_sum / self.loss_count if self.loss_count else float("nan"),
        }
        for suffix, (x, buffers) in self.method.points(self.server).items():
            row |= self.evaluator.metrics(x, buffers, suffix)
        row |= self.method.report(self.server)
        for name, values in self.method.traces(self.server).items():
            each = {f"client{client}": value for client, value in enumerate(values.tolist())}
            self.clients.append({"round": self.round, "quantity": name, **each})
        self.loss_sum, self.loss_count = 0.0, 0
        self.curve.append(row)
        self.evaluation_seconds.append(time.perf_counter() - begun)

    def _state(self) -> dict[str, Any]:
        """Return all that a resumed run needs."""
        return {
            "server": self.server, "own": self.own, "round": self.round, "samples": self.samples,
            "ledger": [self.ledger.up, self.ledger.down, self.ledger.buffers], "curve": self.curve,
            "clients": self.clients,
            "seconds": self.seconds, "evaluation_seconds": self.evaluation_seconds,
            "loss": [self.loss_sum, self.loss_count],
        }  # fmt: skip

    def _save(self) -> None:
        """Write a checkpoint. It only insures the work: a disk that takes none does not stop the training."""
        assert self.checkpoint_path is not None
        try:
            checkpoint.save(self.checkpoint_path, self.spec.key, self._state())
            self._insured = True
        except OSError as error:
            if self._insured:
                log.warning(
                    "cannot write %s (%s): training goes on without", self.checkpoint_path, error.strerror
                )
            self._insured = False

    def _resume(self) -> None:
        if self.checkpoint_path is None:
            return
        state = checkpoint.load(self.checkpoint_path, self.spec.key, self.device, self._state())
        if state is None:
            return
        self.server, self.own = state["server"], state["own"]
        self.round, self.samples = state["round"], state["samples"]
        self.ledger, self.curve = Ledger(*state["ledger"]), state["curve"]
        self.clients = state["clients"]
        self.seconds, self.evaluation_seconds = state["seconds"], state["evaluation_seconds"]
        self.loss_sum, self.loss_count = state["loss"]
