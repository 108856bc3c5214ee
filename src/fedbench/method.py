"""The contract of a method, with FedAvg as the default, and the other names that a file with a method imports.

from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from fedbench.errors import UserError, unknown
from fedbench.problem import Batch, Problem, State, buffers_of
from fedbench.ranges import Count, Memory, NotNegative, Positive, Share, Weight
from fedbench.task import ConditionalTask, LabelledTask, Task

__all__ = [
    "Batch", "ConditionalTask", "Count", "FederatedMethod", "LabelledTask", "Memory", "NotNegative", "Positive",
    "Problem", "Share", "State", "Task", "Weight", "average", "buffers_of",
]  # fmt: skip


class FederatedMethod:
    """A method: the server's state, one local step of a client, and how the server aggregates the results.

    A subclass is a frozen dataclass whose fields are the hyper-parameters; the configuration gives each field a value.
    A field has a default only if it was added after runs had been stored: the value that was built in before
    (``fedbench.spec.LATE_PARAMS``). Tensors of a client state have a leading client axis K, tensors of the server
    state have none. A client state also holds the numbers of the ``client`` and of the ``round``, [K] int64 each.
    Steps are pure: they return a new state. Only batch-norm statistics and ``overwrites`` change in place.

    Attributes:
        averaged: names of the tensors that clients send, the server averages, and the server sends back.
        own: names of the tensors that each client keeps between rounds and does not send.
        broadcast: names of further tensors that the server sends along with ``averaged``.
        uploaded: names of further tensors that clients send along with ``averaged``.
        gathered: names of tensors that clients send and the server does not average, [K, n] or [K, n, ...]; nan marks
            an empty entry. ``server`` receives the entries of all participants joined in the participants' order,
            without empty entries and without axis K, and each participant's number of entries as
            ``<name>_counts`` [K].
        memory: the most floats that the server of a gathering method may hold besides the averaged tensors.
        running: names of batch-norm statistics; they are averaged too, and their traffic is counted separately.
        overwrites: names of the tensors that a step hands to ``problem.descend`` and does not read afterwards, so that
            ``descend`` may overwrite them. A subclass that defines ``step`` has to set ``overwrites`` again.
        batches: independent mini-batches per local step.
        task: the kind of task that the method works on: any task (``Task``) if the method takes its loss from
            ``problem.loss``, tasks with labelled samples (``LabelledTask``), or tasks with nested draws
            (``ConditionalTask``).
        partial: whether rounds may leave clients out.
        binary: whether the method works on two classes only, as methods that maximise an AUC do.
        weighs: whether every average of the method weighs clients as ``train.weights`` says; :meth:`mean`,
            :func:`average` and ``problem.share`` do. A subclass that defines ``server`` has to set ``weighs`` again.
    """

    averaged: ClassVar[tuple[str, ...]] = ("x",)
    own: ClassVar[tuple[str, ...]] = ()
    broadcast: ClassVar[tuple[str, ...]] = ()
    uploaded: ClassVar[tuple[str, ...]] = ()
    gathered: ClassVar[tuple[str, ...]] = ()
    memory: ClassVar[int] = 10_000_000
    running: ClassVar[tuple[str, ...]] = ("buffers",)
    overwrites: ClassVar[tuple[str, ...]] = ()
    batches: ClassVar[int] = 1
    task: ClassVar[type[Task]] = LabelledTask
    partial: ClassVar[bool] = True
    binary: ClassVar[bool] = False
    weighs: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """Reset ``overwrites`` where a subclass defines ``step``, and ``weighs`` where it defines ``server``."""
        if "step" in vars(cls) and "overwrites" not in vars(cls):
            cls.overwrites = ()
        if "server" in vars(cls) and "weighs" not in vars(cls):
            cls.weighs = False

    @property
    def kept(self) -> set[str]:
        """Names of the tensors of a client's state that are read after its round; others are lost."""
        return {*self.averaged, *self.own, *self.uploaded, *self.gathered, *self.running}

    def needs_smooth(self) -> str:
        """Name the hyper-parameter that requires a network with a second derivative; empty if none does."""
        return ""

    def init(self, problem: Problem, w: Tensor) -> State:
        """Return the server's state before the first round, given initial parameters ``w`` [d]."""
        return {"x": w}

    def init_own(self, problem: Problem, server: State) -> State:
        """Return the tensors that each client keeps for itself before its first round, without client axis."""
        return {}

    def before_training(self, problem: Problem, server: State) -> State:
        """Prepare the server's state before round 0, e.g. from data of the clients.

        The method charges the floats that clients send for it (``problem.charges``). Called once: a run that continues
        from a checkpoint has the result in its state. A tensor that grows later is empty in the state that ``init``
        returns.
        """
        return server

    def init_from_data(self, problem: Problem, state: State, batches: list[Batch]) -> State:
        """Initialise a client's state from data, before its first step of round 0."""
        return state

    @property
    def starts_from_data(self) -> bool:
        """Whether the method defines :meth:`init_from_data`; only then is a first batch drawn and counted."""
        return type(self).init_from_data is not FederatedMethod.init_from_data

    def begin(self, problem: Problem, state: State) -> State:
        """Prepare a client's state at the start of a round, e.g. remember where it started."""
        return state

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Make one local step; the new state holds ``loss`` [K].

        ``decay`` multiplies the step sizes of clients; the server's step size does not decay.
        """
        raise NotImplementedError

    def end(self, problem: Problem, state: State) -> State:
        """Finish a client's round, e.g. compute its new control variate."""
        return state

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], round_index: int
    ) -> State:
        """Return the server's state after a round; the default takes the :meth:`mean` of everything that is averaged.

        ``clients`` holds the final states of the participants, stacked in the order of ``participants``.
        """
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
        """Return the numbers that each evaluation records for every client, [N] each, in ``clients.csv``."""
        return {}

    def mean(self, clients: State) -> State:
        """Return the means of everything that is averaged, batch-norm statistics included.

        Unless ``train.weights`` says otherwise, all clients weigh the same in every method, even where the paper weighs
        clients by their samples (FedAvg, FedNova, MOON, FedLC).
        """
        names = [*self.averaged, *(name for name in self.running if name in clients)]
        return {name: average(clients, clients[name]) for name in names}


def average(clients: State, values: Tensor) -> Tensor:
    """Return the mean over clients of ``values`` [K, ...], weighted by the ``weights`` [K] of their states, if any."""
    if "weights" not in clients:
        return values.mean(0)
    return (clients["weights"].to(values.dtype).view(-1, *[1] * (values.dim() - 1)) * values).sum(0)


def check_weights(method: FederatedMethod, name: str, weights: str) -> None:
    """Raise UserError if clients are to weigh by their samples and the method called ``name`` does not support it."""
    if weights != "equal" and not method.weighs:
        raise UserError(
            f"method {name!r} weighs clients itself: train.weights {weights!r} has no meaning for it, leave it out"
        )


def check_step(method: FederatedMethod, before: State, after: Any) -> None:
    """Compare what a method's ``step`` returned with the state that it was given.

    Raises:
        UserError: ``after`` is no dict, or lacks ``loss`` or what is averaged or kept, in its shape and type.
    """
    losses = torch.empty(before["client"].shape)
    kept = {name: before[name] for name in (*method.averaged, *method.own) if name in before}
    _check_returned(method, "step", {"loss": losses, **kept}, after)


def check_server(method: FederatedMethod, before: State, after: Any) -> None:
    """Likewise with what ``server`` returned, of what is averaged."""
    _check_returned(method, "server", {name: before[name] for name in method.averaged}, after)


def _check_returned(method: FederatedMethod, function: str, wanted: State, given: Any) -> None:
    label = f"{type(method).__module__}: {function} has to return"
    if not isinstance(given, dict):
        raise UserError(f"{label} a state, a dict of tensors, not {type(given).__name__}")
    for name, like in wanted.items():
        if (is_now := _described(given.get(name))) != _described(like):
            raise UserError(f"{label} {name!r} as {_described(like)}, not {is_now}")


def _described(value: Any) -> str:
    return f"{value.dtype} {[*value.shape]}" if isinstance(value, Tensor) else type(value).__name__


def one_of(method: str, key: str, value: str, known: tuple[str, ...]) -> None:
    """Raise UserError unless the ``value`` of the hyper-parameter ``key`` is one of the ``known`` words."""
    if value not in known:
        raise UserError(f"method {method!r}: {unknown(key, value, known)}")
