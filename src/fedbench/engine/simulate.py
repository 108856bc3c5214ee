"""One run, from its specification and arrays to its outcome: set up, train to the end, save checkpoints."""

from __future__ import annotations

import logging
import time
import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedbench import net as network
from fedbench import tasks
from fedbench.algorithms import make_method
from fedbench.data.clients import Arrays, ClientData
from fedbench.engine import checkpoint
from fedbench.engine.evaluator import Evaluator
from fedbench.engine.execution import Execution, Outcome, Progress, Stopped
from fedbench.engine.loop import Loop
from fedbench.engine.recorder import Recorder
from fedbench.engine.schedule import Schedule, check_clients, check_method, participants
from fedbench.engine.state import RunState
from fedbench.engine.weights import Weights, named, start_from
from fedbench.errors import UNUSABLE_DISK, UserError, cannot_write
from fedbench.method import FederatedMethod, check_weights
from fedbench.net import Net
from fedbench.problem import Batch, Problem, State
from fedbench.random import stream
from fedbench.spec import RunSpec

log = logging.getLogger(__name__)

DEFAULT = Execution()


def pause(wanted: float, saving: float) -> float:
    """Return the seconds to the next checkpoint: the wanted ones, at least 20 times ``saving``; 0 if 0 are wanted."""
    return max(wanted, 20 * saving) if wanted else 0.0


class Simulation:
    """One run. ``run()`` trains it to the end, from its checkpoint if there is one.

    Args:
        spec: the run.
        arrays: its data.
        device: device of its tensors.
        how: how it is executed.
        start: the weights, by name, that a run with a ``start`` begins with.

    Attributes:
        state: its training state after the last round.
        record: its measurements so far.
    """

    def __init__(
        self,
        spec: RunSpec,
        arrays: Arrays,
        device: torch.device,
        how: Execution = DEFAULT,
        start: Weights | None = None,
    ) -> None:
        self.spec, self.device, self.how = spec, device, how
        self.method: FederatedMethod = make_method(spec.method, spec.params)
        self.data = ClientData(arrays, spec.train, spec.seed, device, how.inputs)
        task = tasks.make_task(spec.task)
        tasks.check_fit(self.method, task, spec.method, spec.task)
        check_method(self.method, spec.method, spec.train.participation)
        check_weights(self.method, spec.method, spec.train.weights)
        check_clients(spec.train.participation, len(self.data.sizes))
        net = self._network(task.outputs(arrays), start)
        task.check(self.data, arrays, net)
        self.evaluator = Evaluator(task, net, arrays, self.data)
        itself = weakref.proxy(self)  # a problem that held it would keep the data of a run that ended
        self.problem = Problem(
            task, net, task.prior(self.data), self.data.n_classes, len(self.data.sizes), spec.train.weight_decay,
            spec.train.clip_norm, spec.train.clip_value, partial(Simulation._draw, itself), self.data.auxiliary,
            partial(Simulation._client_losses, itself), batches=self.data.epoch_batches,
            class_counts=lambda: itself.data.class_counts, participants=partial(Simulation._participants, itself),
            seed=spec.seed, period=spec.train.period, weights=self.data.weights,
        )  # fmt: skip
        self.schedule = Schedule(spec.train, self.data)
        self.record = Recorder(self.method, self.evaluator, spec.train, how.keep)
        self.loop = Loop(self.method, self.problem, self.data, self.schedule, self.record, how)
        self.state = RunState.initial(self.method, self.problem, device)
        self._insured = True  # whether the last checkpoint could be written
        self._pause = how.checkpoint_seconds

    def _network(self, outputs: int, start: Weights | None) -> Net:
        """Build the network, with random weights or those of ``start``."""
        spec = self.spec
        seed = int(stream(spec.seed, "initial weights").integers(2**31))
        how = spec.network
        net = network.build_network(how.name, self.data.sample, outputs, seed, how.options, how.weights)
        net.rounding = spec.train.precision == "bf16"
        if (spec.start is None) != (start is None):
            raise ValueError("a run with a start needs its weights, any other takes none")
        if spec.start is not None and start is not None:
            start_from(net, start, spec.start.drop_head)
        return net

    @property
    def where(self) -> str:
        """Where inputs are."""
        return self.data.where

    @property
    def compiled(self) -> bool:
        """Whether steps run compiled."""
        return self.loop.compiled

    @property
    def server(self) -> State:
        """The server's current state."""
        return self.state.server

    def run(self) -> Outcome:
        """Train to the end or to divergence."""
        self._resume()
        self.record.start()
        reason, final = "", dict[str, float]()
        try:
            final = self._train()
        except FloatingPointError as error:
            reason = f"{error} in round {self.state.round} of {self.schedule.rounds}"
        outcome = self.record.outcome(final, reason)
        if reason:
            return outcome
        evaluated = next(iter(self.method.points(self.server).values()))
        if self.spec.train.select is None:  # which reports another evaluation than this, the last
            outcome.metrics |= self.evaluator.on_training_data(*evaluated)
        kept = self.record.reported_point()
        if kept is not None:
            outcome.model, outcome.predictions = (
                named(self.problem.net, *kept),
                self.evaluator.predictions(*kept),
            )
        if self.spec.train.keep_model:
            outcome.model = named(self.problem.net, *evaluated)
        return outcome

    def train_round(self) -> State:
        """Train one round and return the participants' final states."""
        return self.loop.train_round(self.state)

    def _train(self) -> dict[str, float]:
        """Train all rounds that are left and return the final metrics that are no part of the curve.

        Raises:
            FloatingPointError: the run diverged.
            Stopped: it was told to.
        """
        state, record, rounds = self.state, self.record, self.schedule.rounds
        begun_at, saved, first = state.round, time.perf_counter(), 0.0
        drawn = self._global_draws()
        final: dict[str, float] = {}
        if state.round == 0 and not record.curve:
            self.loop.before_training(state)
            record.evaluate(0, state.server)
        while state.round < rounds:
            clients = self.train_round()
            passed = record.tick()
            if state.round == begun_at + 1:
                first = passed
                self._check_repeatable(drawn)
            self._check_finite()
            last = state.round == rounds
            if last and self._client_metrics_available:
                final = self.evaluator.spread(clients)
            del clients  # or two rounds' models would be held at a time
            if state.round in self.schedule.evaluated:
                record.evaluate(state.round, state.server)
            latest = record.curve[-1] if record.curve else {}
            self.how.on_round(Progress(state.round, rounds, begun_at, passed, latest, first))
            if last:
                break
            stop = self.how.stop()
            due = stop or time.perf_counter() - saved >= self._pause
            if self.how.checkpoint is not None and due:
                self._save()
                saved = time.perf_counter()
            if stop:
                raise Stopped(f"stopped after round {state.round} of {rounds}")
        return final

    def _global_draws(self) -> Tensor:
        """Return the state of PyTorch's own generator on the device, which no seed of a run sets."""
        return torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else torch.get_rng_state()

    def _check_repeatable(self, drawn: Tensor) -> None:
        """Refuse a network, method or task that draws numbers which another run of the same key would not have."""
        if not torch.equal(drawn, self._global_draws()):
            raise UserError(
                f"network {self.spec.network.name!r}, method {self.spec.method!r} or its task draws random numbers, as "
                "dropout does, so that no run could be repeated: leave that out"
            )

    def _check_finite(self) -> None:
        """Raise FloatingPointError if what was averaged is not: momenta can break before the parameters do."""
        names = (*self.method.averaged, *self.method.running)
        for name in names:
            if name in self.server and not bool(torch.isfinite(self.server[name].sum())):
                raise FloatingPointError("parameters became non-finite")

    @property
    def _client_metrics_available(self) -> bool:
        """Whether the last round's models tell of all clients, and of the row that is reported."""
        return self.spec.train.participation.rule == "full" and self.spec.train.select is None

    def _draw(self, client: int, n: int, label: str = "") -> Batch:
        """Draw samples of a client that no other round or label draws."""
        batch = self.data.draw(client, n, f"draw {label}" if label else "draw", self.state.round)
        self.problem.charges.add(forward=batch.labels.shape[1])
        return batch

    def _client_losses(self, w: Tensor, buffers: Tensor | None, time: int | None = None) -> Tensor:
        """Return the mean cross-entropy of ``w`` [>= d] on each client's training data, [N]: all are scored once."""
        self.problem.charges.add(forward=sum(self.data.sizes))
        return self.evaluator.client_losses(w, buffers, time)

    def _participants(self, round_index: int) -> list[int]:
        return participants(self.spec.train.participation, len(self.data.sizes), round_index, self.spec.seed)

    def _dump(self) -> dict[str, Any]:
        """Return all that a resumed run needs."""
        return self.state.dump() | self.record.dump()

    def _save(self) -> None:
        """Write a checkpoint. It only insures the work: a disk without room for it does not stop the training.

        Raises:
            WriteError: the disk takes nothing at all, so it would not take the result either.
        """
        assert self.how.checkpoint is not None
        begun = time.perf_counter()
        try:
            checkpoint.save(self.how.checkpoint, self.spec.key, self._dump())
            self._insured = True
        except OSError as error:
            if error.errno in UNUSABLE_DISK:
                raise cannot_write(self.how.checkpoint, error) from None
            if self._insured:
                log.warning(
                    "cannot write %s (%s): training goes on without", self.how.checkpoint, error.strerror
                )
            self._insured = False
        self._pause = pause(self.how.checkpoint_seconds, time.perf_counter() - begun)

    def _resume(self) -> None:
        if self.how.checkpoint is None:
            return
        saved = checkpoint.load(self.how.checkpoint, self.spec.key, self.device, self._dump())
        if saved is not None:
            self.state.restore(saved)
            self.record.restore(saved)
