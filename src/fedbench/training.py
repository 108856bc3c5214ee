"""Trains cells: finds finished runs in the store, trains the others, writes one result per cell."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedbench import cards, files, journal, stopping
from fedbench.cells import Cell
from fedbench.data.clients import Arrays
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare, read_summary
from fedbench.engine.outcome import Progress, Stopped
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.progress import Trail, say
from fedbench.provenance import provenance
from fedbench.runs import Record, Store
from fedbench.schema import Config
from fedbench.specs import RunSpec


def choose_device(wanted: str) -> torch.device:
    """Resolve ``auto`` to a graphics card where there is one, else the CPU.

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


def own_device(wanted: str) -> torch.device:
    """Resolve the device as :func:`choose_device` does, after reserving a graphics card of our own.

    A card is made to compute in full single precision and, as far as cuDNN goes, the same each time.
    """
    if wanted != "cpu":
        cards.take()
    device = choose_device(wanted)
    if device.type == "cuda":
        # without these, convolutions round to 10 bits and may add in another order each time
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    if cards.VISIBLE in os.environ:
        say(f"  device {device.type}, {cards.VISIBLE}={os.environ[cards.VISIBLE]}")
    return device


def load_arrays(spec: RunSpec, data_dir: str | Path, mirror: str | None = None) -> Arrays:
    """Load what a run trains on, preparing and partitioning first where that was not done yet."""
    name = spec.data.dataset
    prepare(name, data_dir, mirror)
    make_partition(spec.data, spec.seed, data_dir)
    prepared, partition = load_prepared(name, data_dir), load_partition(spec.data, spec.seed, data_dir)
    clients = [partition.client(k) for k in range(partition.n_clients)]
    n_classes = int(max(partition.y_train.max(), partition.y_test.max())) + 1
    return Arrays(
        prepared.x_train,
        partition.y_train,
        prepared.x_test,
        partition.y_test,
        clients,
        partition.validation,
        n_classes,
    )


def train_run(
    spec: RunSpec, config: Config, store: Store, on_round: Callable[[Progress], None] | None = None
) -> Record:
    """Return the finished run: from the store, else trained now (from its checkpoint where there is one)."""
    found = store.load(spec.key)
    if found is not None:
        store.tidy(spec.key)
        return found
    device = own_device(config.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # more threads collapse when processes share the cores
    with store.claim(spec.key) as folder:
        found = store.load(spec.key)  # another process may have finished it while this one waited
        if found is not None:
            return found
        arrays = load_arrays(spec, config.data_dir, config.mirror)
        data = {"data": read_summary(spec.data.dataset, config.data_dir)["sha256"]}
        chunk = (
            config.client_chunk if config.client_chunk is not None else (1 if device.type == "cpu" else None)
        )
        path, every = store.checkpoint(spec.key), config.checkpoint_seconds
        with stopping.held_back() as stop:
            simulation = Simulation(spec, arrays, device, chunk, path, every, Trail(folder, on_round), stop)
            journal.note(store.root, "continued" if path.exists() else "begun", spec.key)
            try:
                outcome = simulation.run()
            except Stopped as stopped:
                say(f"  seed {spec.seed}: {stopped}; the same command goes on from here")
                raise
            metrics = {name: _plain(value) for name, value in outcome.metrics.items()}
            times = {"seconds": outcome.seconds, "evaluation_seconds": outcome.evaluation_seconds}
            record = Record(
                spec.key, spec.model_dump(mode="json"), outcome.status, outcome.reason, metrics,
                provenance(device.type) | times | data, {},
            )  # fmt: skip
            record = store.finish(record, outcome.curve, outcome.clients)
            journal.note(store.root, outcome.status, spec.key)
        return record


def train_cell(
    cell: Cell, config: Config, store: Store, on_round: Callable[[int, Progress], None] | None = None
) -> dict[str, Any]:
    """Train all seeds of a cell, write its result to ``cell.path`` and return it.

    A diverged seed is a result; the other seeds go on.
    """
    runs = []
    for spec in cell.runs:
        seed = spec.seed
        progress = None if on_round is None else (lambda p, seed=seed: on_round(seed, p))
        record = train_run(spec, config, store, progress)
        runs.append(
            {
                "seed": seed,
                "key": record.key,
                "status": record.status,
                "reason": record.reason,
                "metrics": record.metrics,
                "provenance": {
                    name: record.provenance[name]
                    for name in ("commit", "versions", "hardware", "device", "data")
                    if name in record.provenance  # runs of earlier versions do not say which data they had
                },
            }
        )
    result = {
        "paper": cell.paper, "scale": cell.scale, "dataset": cell.dataset, "setting": cell.setting,
        "method": cell.method, "key": cell.key, "runs": runs,
    }  # fmt: skip
    files.write(cell.path, json.dumps(result, indent=1, sort_keys=True) + "\n")
    return result


def _plain(value: float) -> float | None:
    """Return None for what JSON has no number for."""
    return None if isinstance(value, float | np.floating) and not math.isfinite(value) else float(value)
