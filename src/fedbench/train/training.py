"""Trains cells: takes finished runs from the store, trains the others, writes a result per cell; saves when stopped."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import torch

from fedbench import files
from fedbench.data import multi_source
from fedbench.data.clients import Arrays
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import prepare
from fedbench.engine import compiled
from fedbench.engine.execution import Execution, Progress, Stopped
from fedbench.engine.loop import AUTO
from fedbench.engine.references import Alone, simulation_of
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.results.run_facts import class_counts, run_facts
from fedbench.spec import RunSpec
from fedbench.store import cell_files, journal
from fedbench.store.code import digest_of
from fedbench.store.provenance import provenance
from fedbench.store.record import MODEL, Record
from fedbench.store.runs import CODE, Store
from fedbench.study.cells import Cell
from fedbench.study.schema import Config
from fedbench.train import gpus, initial_weights
from fedbench.train.keeping import Keeper
from fedbench.train.progress import Trail, say


def choose_device(wanted: str) -> torch.device:
    """Resolve ``auto`` to a GPU where there is one, else the CPU.

    Raises:
        UserError: ``cuda`` was asked for and there is none.
    """
    if wanted == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    if wanted == "cuda":
        raise UserError("device is 'cuda', but PyTorch finds no CUDA device; use device=auto or device=cpu")
    return torch.device("cpu")


def own_device(wanted: str, precision: str = "float32") -> torch.device:
    """Resolve the device as :func:`choose_device` does, after reserving a GPU of our own.

    A GPU is made to compute as ``train.precision`` says and, as far as cuDNN goes, the same each time.

    Raises:
        UserError: there is no such device, or it does not know the precision.
    """
    if wanted != "cpu" and torch.version.cuda is not None:
        gpus.take()
    device = choose_device(wanted)
    if device.type == "cuda":
        # without these, convolutions round to 10 bits and may add in another order each time
        rounded = precision == "tf32"
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = rounded
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    elif precision == "tf32":
        raise UserError("train.precision: tf32 needs a GPU (device=cuda); bf16 and float32 do not")
    if gpus.VISIBLE in os.environ:
        say(f"  device {device.type}, {gpus.VISIBLE}={os.environ[gpus.VISIBLE]}")
    return device


def load_arrays(spec: RunSpec, data_dir: str | Path, mirror: str | None = None) -> Arrays:
    """Load what a run trains on, preparing and partitioning first where that was not done yet."""
    for name in spec.data.datasets:
        prepare(name, data_dir, mirror)
    make_partition(spec.data, spec.seed, data_dir)
    prepared = multi_source.load_sources(spec.data, data_dir)
    partition = load_partition(spec.data, spec.seed, data_dir)
    clients = [partition.client(k) for k in range(partition.n_clients)]
    binary = spec.data.labels.rule != "original"
    n_classes = 2 if binary else int(max(partition.y_train.max(), partition.y_test.max())) + 1
    return Arrays(
        prepared.x_train, partition.y_train, prepared.x_test, partition.y_test, clients, partition.validation,
        n_classes, prepared.site_test, prepared.sites, prepared.site_train,
    )  # fmt: skip


def train_run(
    spec: RunSpec, config: Config, store: Store, on_round: Callable[[Progress], None] = lambda progress: None
) -> Record:
    """Return the finished run: from the store, else trained now (from its checkpoint where there is one)."""
    finished = store.load(spec.key)
    if finished is not None:
        store.tidy(spec.key)
        return finished
    start = None
    if spec.start is not None:  # before the claim: that may take hours, and others may start from it too
        train = functools.partial(train_run, config=config, store=store)
        start = initial_weights.weights(spec.start, store, train)
    device = own_device(config.device, spec.train.precision)
    if device.type == "cpu":
        torch.set_num_threads(1)  # more threads collapse when processes share the cores
    if config.compile:
        compiled.check_compiler(config.compile, device.type)
        compiled.keep_at(Path(config.data_dir) / "compiled")
    with store.claim(spec.key) as folder:
        if finished := store.load(spec.key):  # another process may have finished it while this one waited
            return finished
        files.check_room(folder)
        arrays = load_arrays(spec, config.data_dir, config.mirror)  # what is read may be gone when it ends
        data = multi_source.checksum(spec.data, config.data_dir)
        keeper = Keeper(spec, config.data_dir, arrays.n_classes) if config.keep_model else None
        with held_back() as stop:
            how = Execution(
                chunk=AUTO if config.client_chunk is None else config.client_chunk,
                compiling=config.compile,
                inputs=config.inputs,
                checkpoint=store.checkpoint(spec.key),
                checkpoint_seconds=config.checkpoint_seconds,
                on_round=Trail(folder, on_round),
                stop=stop,
                keep=config.keep_model,
            )
            counts = class_counts(spec, Path(config.data_dir))
            simulation = simulation_of(spec, arrays, device, how, start)
            made = {"data": data, "code": _begun_by(folder, digest_of(spec))}
            return _trained(spec, simulation, made, counts, store, keeper)


def _begun_by(folder: Path, code: str) -> str:
    """Return the code that began a run: what other code goes on with counts as made by the former."""
    noted = folder / CODE
    begun = noted.read_text() if noted.exists() and any(folder.glob("*.pt")) else code
    if begun != code:
        say("  other code began this run: it goes on, and `fedbench forget --other-code` drops it")
    files.write(noted, begun)
    return begun


def _trained(
    spec: RunSpec,
    simulation: Simulation | Alone,
    made: dict[str, Any],
    counts: dict[str, list[int]],
    store: Store,
    keeper: Keeper | None,
) -> Record:
    """Train a run whose claim is held, ``made`` of data and code of these checksums, and put it into the store."""
    made |= provenance(simulation.device.type)  # before: the code may be another on disk when the run ends
    if simulation.where == "host":
        say("  inputs stay in the prepared file, which all jobs of this machine share")
    journal.note(store.root, "continued" if store.checkpoint(spec.key).exists() else "begun", spec.key)
    try:
        outcome = simulation.run()
    except Stopped as stopped:
        say(f"  seed {spec.seed}: {stopped}; the same command goes on from here")
        raise
    metrics = {name: _plain(value) for name, value in outcome.metrics.items()}
    made |= {
        "compiled": simulation.compiled,
        "inputs": simulation.where,
        "precision": spec.train.precision,
        **{name: getattr(outcome, name) for name in ("seconds", "evaluation_seconds", "curve_seconds")},
    }
    facts = run_facts(metrics, pd.DataFrame(outcome.curve), spec.train, counts)
    facts |= {name: {"sign": word} for name, word in outcome.undefined.items()}
    record = Record(
        spec.key, spec.model_dump(mode="json"), outcome.status, outcome.reason, metrics, made, {}, facts
    )
    kept = {} if outcome.model is None else {MODEL: initial_weights.model_bytes(outcome.model)}
    record = store.finish(record, outcome.curve, outcome.clients, keeper.files(outcome) if keeper else kept)
    journal.note(store.root, outcome.status, spec.key)
    return record


def train_cell(
    cell: Cell,
    config: Config,
    store: Store,
    on_round: Callable[[int, Progress], None] = lambda seed, progress: None,
    on_end: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Train all seeds of a cell, write its result to ``cell.path``, return its runs; ``on_end`` is told of each seed.

    A diverged seed is a result; the other seeds go on.
    """
    records = []
    for spec in cell.runs:
        progress = functools.partial(on_round, spec.seed)
        records.append(train_run(spec, config, store, progress))
        on_end(records[-1])
    cell_files.write_cell(cell, records)
    return records


def _plain(value: float) -> float | None:
    """Return None for what JSON has no number for."""
    return float(value) if math.isfinite(value) else None


SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Hold back the signals that end a program until the block is done; yield a function that says if one came.

    The signal then acts as it would have: the program ends by it, which its parent process sees. A second Ctrl-C is
    not held back; a second SIGTERM is, as a scheduler and a parent process may both send one. Signals that are ignored
    stay ignored; outside the main thread, where none arrive, nothing changes.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if number == signal.SIGINT:
            restore()

    def restore() -> None:
        for signum, handler in before.items():
            signal.signal(signum, handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    handlers = {signum: signal.getsignal(signum) or signal.SIG_DFL for signum in SIGNALS}
    before = {signum: handler for signum, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for signum in before:
            signal.signal(signum, note)
        yield lambda: bool(came)
    finally:
        restore()
        if came:
            signal.raise_signal(came[0])
