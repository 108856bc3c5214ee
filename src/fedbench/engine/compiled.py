"""A method's local step as machine code: traced once for each form of its inputs, then compiled by inductor.

The trace of any method's step holds the forward pass, the backward pass and the update as one graph. Inductor keeps the
compiled code on disk, so that the next process only traces.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import logging
import os
import shutil
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import torch
from torch import Tensor

from fedbench.engine.replay import Replay
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.problem import Problem, State

log = logging.getLogger(__name__)

CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""The variable that says where inductor keeps what it has compiled."""
FORMS = 3
"""Forms of a batch that are compiled, the most frequent ones; each takes some ten seconds."""
KEPT = 64
"""Compiled steps that a process keeps for its next runs; reading one from the disk takes a second or two."""

Form = tuple[Any, ...]
Compiling = bool | Literal["graph"]


def check_compiler(compiling: Compiling, device: str) -> None:
    """Refuse a machine that cannot compile as asked for a ``device``, ``cpu``, ``cuda`` or ``auto``.

    Raises:
        UserError: something is missing; the message names it and the cure.
    """
    if compiling == "graph":
        if device == "cpu":
            raise UserError("compile: graph needs a GPU: set device: cuda, or compile: true or false")
        return
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        raise UserError("compile: true needs triton on a GPU: install it, or set compile: false")
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        raise UserError(
            f"compile: true needs the C++ compiler {compiler!r}, which is not found: install it (apt install g++), "
            "name another in the variable CXX, or set compile: false"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise UserError(
            "compile: true needs Python.h, which is not found: install Python's headers (apt install python3-dev), "
            "or set compile: false"
        )


def keep_at(folder: Path) -> None:
    """Let inductor keep compiled code in ``folder``, unless the user has chosen a folder."""
    os.environ.setdefault(CACHE, str(folder.resolve()))


class Code(NamedTuple):
    """A compiled step: the names of its results, and the function of its input tensors."""

    names: tuple[str, ...]
    run: Callable[..., Sequence[Tensor]]


class Compiled:
    """Calls a method's step, compiled for the most frequent forms of ``batches`` and uncompiled for others.

    The two round differently, so ``batches`` have to be the same whenever a run continues: the batches of round 0.
    With ``graph`` a step is not compiled but recorded as a CUDA graph of its uncompiled kernels.
    """

    def __init__(
        self, method: FederatedMethod, batches: Iterable[Sequence[Any]], graph: bool = False
    ) -> None:
        self._step, self._running, self._graph = method.step, method.running, graph
        self._known: dict[Any, Code] = {}
        self._forms = set[Form]()
        try:
            if method.gathered:
                raise UntraceableError("what its clients send grows from step to step")
            self._forms = {form for form, _ in Counter(map(form_of, batches)).most_common(FORMS)}
        except UntraceableError as error:
            self._give_up(error)

    @property
    def used(self) -> bool:
        """Whether any step runs compiled."""
        return bool(self._forms)

    def __call__(self, problem: Problem, state: State, batches: list[Any], decay: float) -> State:
        """Make one step, as :meth:`FederatedMethod.step`."""
        form = form_of(batches) if self._forms else ()
        if form not in self._forms:
            return self._step(problem, state, batches, decay)
        before = {name: _plain(tensor) for name, tensor in state.items() if name != "loss"}
        tensors = [*before.values(), *(tensor.contiguous() for tensor in _tensors(batches))]
        key = (decay, form, *itertools.chain.from_iterable((name, x.shape) for name, x in before.items()))
        code = self._known.get(key)
        if code is None:
            try:
                code = self._known[key] = self._compile(problem, before, batches, decay, tensors)
            except UntraceableError as error:
                self._give_up(error)
                return self._step(problem, state, batches, decay)
        return before | dict(zip(code.names, code.run(*tensors), strict=True))

    def _give_up(self, error: UntraceableError) -> None:
        log.warning("this method's step cannot be compiled (%s) and is computed as it is", error)
        self._forms.clear()

    def _compile(
        self, problem: Problem, state: State, batches: list[Any], decay: float, tensors: list[Tensor]
    ) -> Code:
        """Trace a step on copies of its inputs, which it may change, and compile the trace."""
        # these take seconds to import
        from torch._guards import TracingContext, tracing
        from torch._subclasses import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        names: list[str] = []
        if problem.class_counts is not None:
            problem.class_counts()  # kept by the data: within a trace it would be counted anew at each step
        seen = _sealed(problem)

        def traced(*inputs: Tensor) -> list[Tensor]:
            now = dict(zip(state, inputs, strict=False))
            new = self._step(seen, dict(now), _filled(batches, iter(inputs[len(state) :])), decay)
            changed = {name: tensor for name, tensor in new.items() if tensor is not now.get(name)}
            names[:] = changed
            return list(changed.values())

        example: list[Any] = [tensor.clone() for tensor in tensors]
        shared = TracingContext(FakeTensorMode(allow_fallback_kernels=True))  # else one for each operation
        try:
            with tracing(shared):
                graph = make_fx(traced)(*example)
        except Exception as error:
            raise UntraceableError((str(error) or type(error).__name__).splitlines()[0]) from error
        if self._graph:
            changed = [at for at, name in enumerate(state) if name in self._running]
            try:
                return Code(tuple(names), Replay(graph, example, changed))
            except RuntimeError as error:  # an operation waits for the processor
                raise UntraceableError(str(error).splitlines()[0]) from error
        return Code(tuple(names), machine_code(graph, example))


def machine_code(graph: torch.fx.GraphModule, example: list[Any]) -> Callable[..., Sequence[Tensor]]:
    """Compile a traced step for inputs shaped as ``example``, or read the compiled code from the cache.

    Raises:
        UserError: the compiler fails.
    """
    from torch._inductor import compile as inductor

    from fedbench.engine import pooling

    name = None
    if example[0].device.type == "cpu":
        pooling.keep(graph)
        name = _name(graph, example)
        if name in _made:
            return _made[name]
    try:
        with warnings.catch_warnings():
            # it would advise to round products: `train.precision` decides that
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            run: Callable[..., Sequence[Tensor]] = inductor(graph, example, options={"compile_threads": 1})
    except Exception as error:
        # an interrupt is none of these; what is left is a compiler that does not work, and no run is worth a traceback
        raise UserError(f"compile: true: {str(error).strip().splitlines()[0]}; set compile: false") from error
    if name is not None:
        if len(_made) == KEPT:
            _made.pop(next(iter(_made)))
        _made[name] = run
    return run


_made: dict[Hashable, Callable[..., Sequence[Tensor]]] = {}


def _name(graph: torch.fx.GraphModule, example: list[Any]) -> Hashable:
    """Return all that compiled code depends on: a step's operations, its constants, and the layouts of its inputs."""
    constants = ((key, _layout(x), x.detach().flatten().contiguous().view(torch.uint8).numpy().tobytes())
                 for key, x in graph.state_dict().items())  # fmt: skip
    return graph.code, tuple(constants), tuple(map(_layout, example))


def _layout(x: Tensor) -> Hashable:
    return x.dtype, x.shape, x.stride()


class UntraceableError(Exception):
    """A step has an operation that a trace cannot hold."""


def form_of(batches: Sequence[Any]) -> Form:
    """Return the shapes of all tensors of a step's batches, in tuples as they are; what is no tensor stands for itself.

    Raises:
        UntraceableError: a batch is no tensor, tuple, number or word; a trace would repeat the first one for ever.
    """
    return tuple(map(_form, batches))


def _form(part: Any) -> Any:
    if isinstance(part, Tensor):
        return part.shape
    if isinstance(part, tuple):
        return tuple(map(_form, part))
    if part is None or isinstance(part, int | float | str):
        return part
    raise UntraceableError(f"its batches hold a {type(part).__name__}, not tensors in a NamedTuple")


def _tensors(batches: Sequence[Any]) -> list[Tensor]:
    tensors: list[Tensor] = []
    for part in batches:
        if isinstance(part, Tensor):
            tensors.append(part)
        elif isinstance(part, tuple):
            tensors += _tensors(part)
    return tensors


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor laid out as its shape says, from the start of its memory: what code is compiled for."""
    return (
        tensor
        if tensor.is_contiguous() and not tensor.storage_offset()
        else tensor.clone(memory_format=torch.contiguous_format)
    )


def _filled(part: Any, tensors: Any) -> Any:
    """Return batches of the same structure with other tensors."""
    if isinstance(part, Tensor):
        return next(tensors)
    if isinstance(part, list):
        return [_filled(each, tensors) for each in part]
    if not isinstance(part, tuple):
        return part
    parts = [_filled(each, tensors) for each in part]
    return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)


def _sealed(problem: Problem) -> Problem:
    """Return the problem without what differs from step to step: a trace would hold what it was at first."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise UntraceableError("it draws, or counts what is sent, within a step")

    sealed: Any = copy.copy(problem)
    sealed.draw = sealed.stream = sealed.client_losses = sealed.participants = refuse
    sealed.cycle = sealed.charges = None
    return sealed  # type: ignore[no-any-return]
