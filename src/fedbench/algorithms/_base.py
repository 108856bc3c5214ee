"""The contract of a method, with FedAvg's answers as defaults."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from fedbench import algorithms, registry
from fedbench.engine.problem import Batch, Problem, State
from fedbench.errors import UserError, unknown


class FederatedMethod:
    """A method: what the server keeps, one local step, and what a synchronisation does with the results.

    A subclass is a frozen dataclass whose fields are its hyper-parameters; all of them are written in the
    configuration, none has a hidden default. Tensors of a client state have a leading client axis K, tensors of the
    server state have none. Steps are pure: they return a new state (batch-norm statistics alone change in place).

    Attributes:
        averaged: names that a synchronisation sends up, averages and sends down.
        own: names each client keeps for itself between rounds.
        broadcast: further names that the server sends down with ``averaged``.
        uploaded: further names that clients send up with ``averaged``.
        running: names of batch-norm statistics, averaged and counted apart.
        batches: independent mini-batches per local step.
    """

    averaged: ClassVar[tuple[str, ...]] = ("x",)
    own: ClassVar[tuple[str, ...]] = ()
    broadcast: ClassVar[tuple[str, ...]] = ()
    uploaded: ClassVar[tuple[str, ...]] = ()
    running: ClassVar[tuple[str, ...]] = ("buffers",)
    batches: ClassVar[int] = 1

    def init(self, problem: Problem, w: Tensor) -> State:
        """Return the server's state before the first round, given initial parameters ``w`` [d]."""
        return {"x": w}

    def init_own(self, problem: Problem, server: State) -> State:
        """Return what each client keeps for itself before its first round, without client axis."""
        return {}

    def first(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Initialise a client's state from data, before its first step of round 0."""
        return state

    def begin(self, problem: Problem, state: State) -> State:
        """Prepare a client's state at the start of a round, e.g. remember where it started."""
        return state

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one local step; ``decay`` multiplies every step size. The new state holds ``loss`` [K]."""
        raise NotImplementedError

    def end(self, problem: Problem, state: State) -> State:
        """Finish a client's round, e.g. compute its new control variate."""
        return state

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Aggregate. ``clients`` holds the participants' final states in their order; default: plain means."""
        return server | self.mean(clients)

    def new_stage(self, problem: Problem, server: State) -> State:
        """React to a step-size decay, e.g. move a proximal anchor."""
        return server

    def points(self, server: State) -> dict[str, tuple[Tensor, Tensor | None]]:
        """Return the parameters [d or more] and statistics to evaluate, by the suffix of their metrics."""
        return {"": (server["x"], server.get("buffers"))}

    def report(self, server: State) -> dict[str, float]:
        """Return further numbers that each evaluation records beside the metrics."""
        return {}

    def traces(self, server: State) -> dict[str, Tensor]:
        """Return what each evaluation records about every client, [N] each: it goes to ``clients.csv``."""
        return {}

    def mean(self, clients: State) -> State:
        """Return the plain means of everything that is averaged, statistics included."""
        names = [*self.averaged, *(name for name in self.running if name in clients)]
        return {name: clients[name].mean(0) for name in names}


def make(name: str, params: Mapping[str, Any]) -> FederatedMethod:
    """Build the method in ``algorithms/<name>.py`` from its hyper-parameters.

    Raises:
        UserError: unknown method, or hyper-parameters that are missing, misspelt or of a wrong kind.
    """
    method = registry.find(sys.modules[algorithms.__name__], "method", name, "Method")
    derived = isinstance(method, type) and issubclass(method, FederatedMethod)
    if not derived or "__dataclass_fields__" not in vars(method):  # not those of the class it derives from
        raise UserError(
            f"method {name!r}: {method!r} has to be a FederatedMethod with @dataclass(frozen=True) above it"
        )
    fields = {field.name: field for field in dataclasses.fields(method)}
    for key in params:
        if key not in fields:
            raise UserError(f"method {name!r}: {unknown('hyper-parameter', key, fields)}")
    missing = sorted(fields.keys() - params.keys())
    if missing:
        raise UserError(
            f"method {name!r} needs {', '.join(missing)}: write every hyper-parameter in the configuration"
        )
    for key, value in params.items():
        wants = str(fields[key].type)
        if wants == "float" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise UserError(f"method {name!r}: {key} is a number, not {value!r}")
        if wants == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise UserError(f"method {name!r}: {key} is a whole number, not {value!r}")
    built: FederatedMethod = method(**params)
    return built


def one_of(method: str, key: str, value: str, known: tuple[str, ...]) -> None:
    """Check a hyper-parameter that is one of a few words."""
    if value not in known:
        raise UserError(f"method {method!r}: {unknown(key, value, known)}")
