"""Checks that every method, task and dataset has to pass, for the tests of your own, here or in another package."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedbench.data.clients import Arrays
from fedbench.data.prepared import load_prepared, prepare, read_summary
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.simulate import DEFAULT, Simulation
from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TaskSpec, TrainSpec
from fedbench.train.training import load_arrays

CONV: dict[str, Any] = {"name": "resnet20", "options": {"blocks": 1}}
"""The smallest network with batch-norm."""


def toy(sizes: Sequence[int] = (24, 32, 40), n_classes: int = 2, side: int = 8) -> Arrays:
    """Make noisy images [n, 1, side, side] and 100 test images; the first row of an image shows its class.

    Client k has ``sizes[k]`` images.
    """
    rng = np.random.default_rng(0)
    n = sum(sizes)
    y = rng.permutation(np.arange(n + 100) % n_classes)
    x = rng.normal(size=(n + 100, 1, side, side)).astype(
        str(torch.get_default_dtype()).removeprefix("torch.")
    )
    x[:, 0, 0] += 2 * y[:, None]
    clients = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    return Arrays(x[:n], y[:n], x[n:], y[n:], clients, np.array([], dtype=np.int64), n_classes)


def simulation(
    method: str, params: Mapping[str, Any], arrays: Arrays | None = None, how: Execution = DEFAULT,
    network: Mapping[str, Any] | None = None, task: Mapping[str, Any] | None = None, **train: Any,
) -> Simulation:  # fmt: skip
    """Set up a short run of a method on the CPU: ``run()`` trains, and ``server`` is then the server's final state.

    Args:
        method: the method's name.
        params: the method's hyper-parameters.
        arrays: the data; default: :func:`toy`.
        how: how the run is executed, such as how many clients are stacked.
        network: name and options of the network; default: an MLP with one hidden layer of 8 units.
        task: name and options of the task; default: classification.
        train: changes to ``train``, which is 6 rounds of 4 steps on batches of 8; None removes a key.
    """
    arrays = arrays or toy()
    given = {"rounds": 6, "period": 4, "batch_size": 8, "evaluations": 2, **train}
    spec = RunSpec(
        data=DataSpec(dataset="toy", clients=len(arrays.clients)),
        network=NetworkSpec(**(network or {"name": "mlp", "options": {"hidden": [8]}})),
        task=TaskSpec(**task) if task else None,
        method=method,
        params=dict(params),
        train=TrainSpec(**{name: value for name, value in given.items() if value is not None}),
        seed=0,
    )
    return Simulation(spec, arrays, torch.device("cpu"), how)


def check_method(method: str, params: Mapping[str, Any], n_classes: int = 2) -> None:
    """Check that a method keeps the rules of :class:`fedbench.method.FederatedMethod`.

    Raises:
        UserError: its functions return what no run can take; the message is that of `fedbench run`.
        AssertionError: the model does not move or diverges, a run is not repeatable, depends on how many clients are
            stacked, does not survive a stop, loses batch-norm statistics, or breaks when clients are unequal or take
            turns; ``step`` adds what is lost after the round, or ``init_own`` returns the axis of clients. The message
            says which rule is broken.
    """

    def run(how: Execution = DEFAULT, **train: Any) -> Simulation:
        return simulation(method, params, toy(n_classes=n_classes), how, **train)

    run(rounds=1).run()
    _check_kept(run(rounds=1))
    fewer = simulation(method, params, toy((24, 24), n_classes)).state.own
    for name, tensor in run().state.own.items():
        assert (tensor.shape[1:2], fewer[name].shape[1:2]) != ((3,), (2,)), (
            f"{method}: init_own has to return {name!r} of one client, without the axis of clients"
        )

    end = _trained(run())
    assert end["x"].isfinite().all(), f"{method} diverged on easy data: are the steps too large?"
    assert not torch.allclose(end["x"], run().server["x"], 1e-5, 1e-6), (
        f"{method} never moved the model: does `step` return the new x?"
    )
    _check_repeatable(run, end, f"{method} gives other numbers when run again: no randomness of its own")
    _check_stacking(run, f"{method} depends on how many clients are stacked: tensors of a client's state start with "
                    "the axis of clients, and `step` returns new tensors instead of changing old ones")  # fmt: skip
    turns: dict[str, Any] = {
        "period": None, "local_epochs": 2, "participation": {"rule": "random", "clients": 2}, "decay_at": [0.5],
    }  # fmt: skip
    _check_stop(functools.partial(run, **turns), f"{method} gives other numbers after a stop: what outlives a "
                "round belongs into the server's state or into `own`")  # fmt: skip
    _check_statistics(
        simulation(method, params, toy((24, 24), n_classes), network=CONV, rounds=2),
        f"{method} leaves batch-norm statistics as they were: give buffers_of(state) to the network",
    )


def _check_statistics(run: Simulation, message: str) -> None:
    """Check that training moves the statistics of batch-norm."""
    start = run.server["buffers"].clone()
    assert not torch.equal(_trained(run)["buffers"], start), message


def _check_kept(run: Simulation) -> None:
    """Check that what ``step`` adds to a client's state is kept after the round, unless ``end`` may read it."""
    if type(run.method).end is not FederatedMethod.end:
        return
    step, added = run.method.step, set[str]()

    def watched(problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        new = step(problem, state, batches, decay)
        added.update(new.keys() - state.keys())
        return new

    object.__setattr__(run.method, "step", watched)
    run.train_round()
    lost = added - run.method.kept - {"loss"}
    assert not lost, (
        f"{run.spec.method}: what `step` adds as {min(lost)!r} is lost after the round: name it in `own` and return "
        "its start from `init_own`, or from `begin` if it is for one round alone"
    )


def check_task(
    name: str,
    options: Mapping[str, Any],
    arrays: Arrays | None = None,
    network: Mapping[str, Any] | None = None,
    lr: float = 0.05,
    **train: Any,
) -> None:
    """Check that a task keeps the rules of :class:`fedbench.task.Task`, with FedAvg as the method.

    Args:
        name: the task's name.
        options: the task's options.
        arrays: data that fit the task; default: :func:`toy`.
        network: name and options of a network that fits the task; default: a small MLP.
        lr: FedAvg's step size.
        train: changes to ``train``, as in :func:`simulation`.

    Raises:
        AssertionError: a run diverges, is not repeatable, depends on how many clients are stacked, does not survive a
            stop, or records other metrics than the task declares. The message says which rule is broken.
    """
    task = {"name": name, "options": dict(options)}

    def run(how: Execution = DEFAULT) -> Simulation:
        return simulation("fedavg", {"lr": lr}, _as_precise(arrays or toy()), how, network, task, **train)

    first = run()
    _check_measures(name, first)
    _check_repeatable(run, first.server, f"{name} gives other numbers when it is run again: draw from "
                      "fedbench.random.stream(data.seed, purpose, client, round_index)")  # fmt: skip
    _check_stacking(run, f"{name} depends on how many clients are stacked: what is drawn for a client may depend on "
                    "that client alone, and a loss is [K], one number each")  # fmt: skip
    _check_stop(run, f"{name} gives other numbers after a stop: what is drawn in a round may depend on the number of "
                "that round alone, not on rounds before it")  # fmt: skip


def _check_measures(name: str, run: Simulation) -> None:
    """Check that a task records the metrics that it declares."""
    said = set(run.problem.task.measures)
    promised = set(run.problem.task.measured(run.data.n_classes, run.spec.train))
    outcome = run.run()
    assert outcome.status == "finished", f"{name} diverged: {outcome.reason}"
    measured = {key.removeprefix("test_") for key in outcome.curve[-1] if key.startswith("test_")}
    assert measured and measured <= said, f"{name} measures {sorted(measured)}, but says {sorted(said)}"
    assert measured == promised, (
        f"{name} measures {sorted(measured)}, but its `measured` says {sorted(promised)}"
    )


def _check_repeatable(run: Callable[[], Simulation], end: State, rule: str) -> None:
    _same(end, _trained(run()), 0, rule)


def _check_stacking(run: Callable[[Execution], Simulation], rule: str) -> None:
    """Compare a run that computes clients one by one with one that stacks them, in double precision."""
    with _double_precision():
        one_by_one, stacked = (_trained(run(Execution(chunk=chunk))) for chunk in (1, None))
    _same(one_by_one, stacked, 1e-6, rule)


def _check_stop(run: Callable[[Execution], Simulation], rule: str) -> None:
    """Compare a run that is stopped in its fourth round and resumed with a run that is not stopped."""
    with tempfile.TemporaryDirectory() as folder:
        how = Execution(checkpoint=Path(folder, "checkpoint.pt"), checkpoint_seconds=0)
        with contextlib.suppress(InterruptedError):
            run(dataclasses.replace(how, on_round=_stop_in_round_4)).run()
        resumed = _trained(run(how))
    _same(_trained(run(DEFAULT)), resumed, 0, rule)


def check_dataset(name: str, data_dir: Path, mirror: str | None = None) -> None:
    """Prepare a dataset twice, check what was prepared, and train FedAvg with two clients on it.

    Args:
        name: the dataset's name.
        data_dir: folder for raw files and prepared arrays.
        mirror: a folder or an address that is asked for raw files before their official source.

    Raises:
        UserError: the prepared arrays do not fit what the dataset declares about itself.
        AssertionError: preparing is not repeatable, a class has no sample in the training or the test part, inputs are
            100 or larger, or training diverges.
    """
    prepare(name, data_dir, mirror)
    first = read_summary(name, data_dir)
    prepare(name, data_dir, mirror, force=True)
    assert read_summary(name, data_dir)["sha256"] == first["sha256"], (
        f"{name} is not the same when it is prepared again: draw from fedbench.random.stream(0, ...)"
    )
    for part in ("train", "test"):
        empty = [label for label, number in first[part]["class_counts"].items() if not number]
        assert not empty, f"{name}: the {part} part has no sample of class {', '.join(empty)}"
    inputs = load_prepared(name, data_dir).x_train
    assert inputs.dtype == np.uint8 or abs(inputs).max() < 100, (
        f"{name} has inputs up to {abs(inputs).max():.3g}: bring them to about 1, or training diverges"
    )
    run = simulation("fedavg", {"lr": 0.01}, toy((24, 24))).spec.model_copy(
        update={"data": DataSpec(dataset=name, clients=2)}
    )
    outcome = Simulation(run, load_arrays(run, data_dir), torch.device("cpu")).run()
    assert outcome.status == "finished", f"{name}: two clients cannot train on it: {outcome.reason}"


def _trained(run: Simulation) -> dict[str, torch.Tensor]:
    outcome = run.run()
    assert outcome.status == "finished", f"{run.spec.method} diverged on easy data: {outcome.reason}"
    return run.server


def _same(
    tensors: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor], close: float, rule: str
) -> None:
    for name, tensor in tensors.items():
        same = torch.allclose(tensor, other[name], rtol=close, atol=close, equal_nan=True)
        assert same, f"{rule} (it is {name} that differs)"


@contextlib.contextmanager
def _double_precision() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _as_precise(arrays: Arrays) -> Arrays:
    """Return arrays whose inputs, unless they are bytes, have torch's default precision."""
    precision = str(torch.get_default_dtype()).removeprefix("torch.")

    def as_precise(x: np.ndarray) -> np.ndarray:
        return x.astype(precision) if np.issubdtype(x.dtype, np.floating) else x

    return dataclasses.replace(arrays, x_train=as_precise(arrays.x_train), x_test=as_precise(arrays.x_test))


def _stop_in_round_4(progress: Progress) -> None:
    if progress.round == 4:
        raise InterruptedError
