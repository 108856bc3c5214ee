"""One round: choose the participants, train them in chunks, step by step, and aggregate their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from fedbench.data.clients import ClientData
from fedbench.engine.compiled import Compiled
from fedbench.engine.execution import Execution
from fedbench.engine.recorder import Recorder
from fedbench.engine.schedule import Schedule
from fedbench.engine.state import RunState
from fedbench.errors import UserError
from fedbench.method import FederatedMethod, check_server, check_step
from fedbench.problem import Batch, Problem, State

AUTO = 0
"""As many clients in one call as pays (:func:`choose_chunk_size`)."""
TINY = 2000
"""Parameters up to which stacking always pays on a CPU: a step is then all overhead."""
PLAIN = 100_000
"""Parameters of a network of plain layers up to which stacking pays on a CPU (benchmarks/README.md)."""
TOGETHER = 1_200_000
"""Parameters of all clients in such a call: more of them leave the core's cache."""
EVEN = 1.2
"""Samples of the client with most over the mean, up to which clients in such a call wait little for one another."""
PURPOSES = ("batches", "inner batches")
"""Streams of a step's mini-batches: the first is the one all methods share."""
LONG = 1000
"""Numbers in a row of a tensor from which copying it on its own is faster, six times for a network's parameters."""


@contextmanager
def flushed() -> Iterator[None]:
    """Let this thread treat float32 numbers below 1.2e-38 as zero; restore its former mode at the end.

    The gradient of a saturated sigmoid is full of them: training with an AUC loss came to take 2.2 to 2.6 times as long
    as without. They are too small to change a parameter. Where the processor has no such mode, nothing changes.
    """
    before = _flushes()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _flushes() -> bool:
    smallest = torch.full((), torch.finfo(torch.float32).tiny, dtype=torch.float32)
    return not bool((0.5 * smallest).any())


class Loop:
    """Trains the rounds of one run."""

    def __init__(
        self,
        method: FederatedMethod,
        problem: Problem,
        data: ClientData,
        schedule: Schedule,
        record: Recorder,
        how: Execution,
    ) -> None:
        self._method, self._problem, self._data = method, problem, data
        self._schedule, self._record, self._chunk = schedule, record, how.chunk
        if how.chunk == AUTO:
            self._chunk = choose_chunk_size(problem, data, bool(how.compiling))
        self._compiled = (
            Compiled(method, self._first_batches(), how.compiling == "graph") if how.compiling else None
        )
        self._checked = False

    def _step(self, state: State, batches: list[Batch], decay: float) -> State:
        step = self._compiled or self._method.step
        try:
            new = step(self._problem, state, batches, decay)
        except RuntimeError as error:  # clients share what the server sent
            if "written-to tensor" not in str(error):
                raise
            raise UserError(
                f'{type(self._method).__module__}: step has to return new tensors (`state | {{"x": ...}}`), not to '
                "change those of `state` in place"
            ) from None
        if not self._checked:
            check_step(self._method, state, new)
            self._checked = True
        return new

    @property
    def compiled(self) -> bool:
        """Whether steps run compiled."""
        return self._compiled is not None and self._compiled.used

    @flushed()
    def before_training(self, state: RunState) -> None:
        """Let the method prepare the server's state before round 0."""
        method, problem = self._method, self._problem
        problem.cycle = self._schedule.turn(0)
        state.server = method.before_training(problem, state.server)
        for name in (*method.averaged, *method.broadcast):
            if name not in (state.server or ()):
                raise UserError(f"{type(method).__module__}: init has to return {name!r}, sent to clients")
        self._record.ledger.add_charges(problem.charges, problem.n_clients)
        self._check_memory(state.server)

    @flushed()
    def train_round(self, state: RunState) -> State:
        """Train one round, aggregate into ``state``, and return the participants' final states."""
        method, problem, ledger = self._method, self._problem, self._record.ledger
        n_clients = problem.n_clients
        assert problem.participants is not None
        chosen = problem.participants(state.round)
        problem.cycle = self._schedule.turn(state.round)
        if state.round in self._schedule.stages:
            state.server = method.new_stage(problem, state.server)
        clients = self._train(state, chosen)
        if problem.weights is not None:
            clients["weights"] = problem.weights[chosen] / problem.weights[chosen].sum()
        sent = state.server
        ledger.add_round(method, sent, clients, n_clients)
        state.server = method.server(problem, sent, clients, chosen, state.round)
        check_server(method, sent, state.server)
        ledger.add_charges(problem.charges, n_clients)
        self._check_memory(state.server)
        for name, tensor in state.own.items():
            put_rows(tensor, chosen, clients[name])
        state.round += 1
        return clients

    def _train(self, now: RunState, chosen: list[int]) -> State:
        """Train the participants and return their final states in their order, what is gathered joined."""
        row_of = {client: index for index, client in enumerate(chosen)}
        clients: State = {}
        sent: dict[str, dict[int, Tensor]] = {name: {} for name in self._method.gathered}
        for chunk in self._chunks(chosen):
            places = [row_of[client] for client in chunk]
            for name, tensor in self._train_chunk(now, chunk).items():
                if name in sent:
                    sent[name] |= zip(places, map(_without_nan, tensor), strict=True)
                    continue
                if name not in clients:
                    clients[name] = tensor.new_empty(len(chosen), *tensor.shape[1:])
                put_rows(clients[name], places, tensor)
        for name, parts in sent.items():
            ordered = [parts[at] for at in sorted(parts)]
            clients[name] = torch.cat(ordered)
            clients[f"{name}_counts"] = torch.tensor(
                [len(part) for part in ordered], device=self._data.device
            )
        return clients

    def _check_memory(self, server: State) -> None:
        """Raise UserError where a method that gathers keeps more on the server than it declares."""
        method = self._method
        if not method.gathered:
            return
        kept = sum(
            tensor.numel()
            for name, tensor in server.items()
            if name not in method.averaged and name not in method.running
        )
        if kept > method.memory:
            raise UserError(
                f"{type(method).__module__}: the server keeps {kept} floats of what it gathers, more than the method's "
                f"memory of {method.memory}: let it drop what is old, or declare more"
            )

    def _chunks(self, chosen: list[int]) -> list[list[int]]:
        """Divide a round's clients into those that are stacked.

        With batch-norm only clients of equal batches are: padding would enter the batch's statistics.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for client in chosen:
            shape = self._problem.task.shape(self._data, client) if self._problem.net.n_buffers else ()
            groups.setdefault(shape, []).append(client)
        size = self._chunk or len(chosen)
        return [group[at : at + size] for group in groups.values() for at in range(0, len(group), size)]

    def _train_chunk(self, now: RunState, chosen: list[int]) -> State:
        """Train some clients of a round, stacked."""
        method, problem, data, n = self._method, self._problem, self._data, len(chosen)
        task, ledger = problem.task, self._record.ledger
        state = {name: tensor[None].expand(n, *tensor.shape) for name, tensor in now.server.items()}
        for name in method.running:
            if name in state:
                state[name] = state[name].clone()  # updated in place
        state |= {name: take_rows(tensor, chosen) for name, tensor in now.own.items()}
        state["client"] = torch.tensor(chosen, device=data.device)
        state["round"] = torch.full_like(state["client"], now.round)
        if now.round == 0 and method.starts_from_data:
            firsts = [task.first(data, chosen, f"first {name}") for name in PURPOSES[: method.batches]]
            state = method.init_from_data(problem, state, [first.batch(0) for first in firsts])
            ledger.samples += sum(first.samples for first in firsts)
        state = method.begin(problem, state)
        works = [task.rounds(data, chosen, now.round, purpose) for purpose in PURPOSES[: method.batches]]
        problem.overwrite = bool(method.overwrites) and not works[0].unequal and not self.compiled
        if problem.overwrite:
            state |= {
                name: state[name].clone(memory_format=torch.contiguous_format) for name in method.overwrites
            }
        losses, decay = torch.zeros(n, device=data.device), self._schedule.decay(now.round)
        for step in range(works[0].steps):
            batches = [work.batch(step) for work in works]
            if works[0].unequal:
                active = works[0].active(step)
                state = self._masked_step(state, batches, decay, active)
                losses += torch.where(active, state["loss"], 0)
            else:
                state = self._step(state, batches, decay)
                losses += state["loss"]
        problem.overwrite = False
        state = method.end(problem, state)
        self._record.trained(losses / works[0].steps_of_each)
        ledger.samples += sum(work.samples for work in works)
        return {name: tensor for name, tensor in state.items() if name in method.kept}

    def _first_batches(self) -> Iterator[list[Any]]:
        """Draw the batches of round 0, step by step, which every start of a run finds alike."""
        assert self._problem.participants is not None
        for chunk in self._chunks(self._problem.participants(0)):
            works = [
                self._problem.task.rounds(self._data, chunk, 0, purpose)
                for purpose in PURPOSES[: self._method.batches]
            ]
            yield from ([work.batch(step) for work in works] for step in range(works[0].steps))

    def _masked_step(self, state: State, batches: list[Batch], decay: float, active: Tensor) -> State:
        """Make one step in which clients that have finished their epochs stand still."""
        still = {name: state[name].clone() for name in self._method.running if name in state}
        new = self._step(state, batches, decay)
        result = {}
        for name, tensor in new.items():
            old = still.get(name, state.get(name))
            if name in self._method.gathered and old is not None and old.shape != tensor.shape:
                longer = tensor.new_full(tensor.shape, float("nan"))
                longer[:, : old.shape[1]] = old
                old = longer
            mask = active.view(-1, *[1] * (tensor.dim() - 1))
            result[name] = tensor if old is None else torch.where(mask, tensor, old)
        return result


def _without_nan(sent: Tensor) -> Tensor:
    """Leave out the entries [n] or [n, ...] of what a client sends that are nan: they are not there."""
    return sent[~sent.isnan().view(len(sent), -1).all(1)]


def choose_chunk_size(problem: Problem, data: ClientData, compiling: bool = False) -> int | None:
    """Return the fastest number of clients in one call, None for all of a round.

    All clients on a GPU or with a tiny network. On a CPU several clients with a small network of plain layers, if
    they have about equal work in a round, as a finished client is computed on with the others. Otherwise one client;
    a compiled step is for one client, too.
    """
    d = problem.net.d
    if data.device.type != "cpu" or d <= TINY:
        return None
    even = data.spec.period is not None or max(data.sizes) <= EVEN * sum(data.sizes) / len(data.sizes)
    if not compiling and problem.net.plain and d <= PLAIN and even:
        return TOGETHER // d
    return 1


def take_rows(tensor: Tensor, rows: Sequence[int]) -> Tensor:
    """Return a copy of some rows [K, ...] of a tensor [N, ...]."""
    if not _copies_rows(tensor):
        return tensor[list(rows)]
    return torch.stack([tensor[row] for row in rows])


def put_rows(tensor: Tensor, rows: Sequence[int], values: Tensor) -> None:
    """Write ``values`` [K, ...] into some rows of a tensor [N, ...]."""
    if not _copies_rows(tensor):
        tensor[list(rows)] = values
        return
    for row, value in zip(rows, values, strict=True):
        tensor[row] = value


def _copies_rows(tensor: Tensor) -> bool:
    """Say whether rows are copied one after another."""
    return tensor.device.type == "cpu" and tensor[0].numel() >= LONG
