"""Trains one cell again and again, in children that die before their first, second, third ... change to a file.

Run by test_checkpoints.py as a program of its own: it forks, which a test process with threads must not.
Prints one JSON line: how many changes one training makes, and what went wrong at which.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fedbench.spec import DataSpec, LabelSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.store import journal
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.schema import Config
from fedbench.train.training import train_cell

DIED = 9
RESULTS = Path("results")
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


def short_run(hidden: int = 5, seed: int = 0) -> RunSpec:
    """A run of two rounds."""
    return RunSpec(
        data=DataSpec(dataset="digits", labels=LabelSpec(rule="halves"), clients=2),
        network=NetworkSpec(name="mlp", options={"hidden": [hidden]}),
        method="fedavg",
        params={"lr": 0.1},
        train=TrainSpec(rounds=2, period=2, batch_size=8, evaluations=1),
        seed=seed,
    )


def cell() -> Cell:
    """A cell of one short run."""
    return Cell(paper="p", scale="s", dataset="Digits", setting={"p": 2}, method="FedAvg", runs=[short_run()])


def die_before(nth: int) -> None:
    """End this process, as a power cut would, before its ``nth`` change to the results (counted from 1).

    Before a file is opened to be written, that is: when a part of what was to be written stands in it.
    """
    count = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        # folders are emptied through descriptors: those names are relative
        inside = "results" in str(args[0]) or not Path(str(args[0])).is_absolute()
        if (writes or event in CHANGES) and inside and not isinstance(args[0], int):
            count += 1
            if count == nth:
                if writes:  # the first bytes may have come that far
                    with os.fdopen(os.open(args[0], args[2], 0o644), "w") as file:
                        file.write('{"torn')
                os._exit(DIED)

    sys.addaudithook(hook)


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process and return its exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def train(data_dir: str, nth: int = 0) -> None:
    """Train the cell; die before the ``nth`` change."""
    die_before(nth)
    train_cell(cell(), Config(device="cpu", checkpoint_seconds=0, data_dir=data_dir), Store())


def content() -> dict[str, bytes]:
    """Every file of the results that has to be the same each time."""
    return {
        str(path): path.read_bytes()
        for path in sorted(RESULTS.rglob("*"))
        if path.is_file() and path.name not in ("run.json", journal.NAME)
    }


def torn(expected: dict[str, bytes]) -> str:
    """Say what looks finished after a death and is not whole; '' if nothing does."""
    for path in Store().root.glob("*/run.json"):
        Store().load(path.parent.name)
    path = cell().path
    return f"{path} is torn" if path.exists() and path.read_bytes() != expected[str(path)] else ""


def trouble(expected: dict[str, bytes]) -> str:
    """Say what is wrong with the results after the last, undisturbed life; '' if nothing is."""
    result = content()
    if result != expected:
        names = sorted(name for name in {*result, *expected} if result.get(name) != expected.get(name))
        return f"files differ: {names}"
    events = [line["event"] for line in journal.read_journal(Store().root)]
    if "finished" in events[:-1]:
        return f"trained again after it was finished: {events}"
    return ""


def main() -> None:
    """Try every change: a life that ends before it, and one that ends well."""
    data_dir = sys.argv[1]
    torch.set_num_threads(1)
    assert in_child(lambda: train(data_dir)) == 0
    expected, nth, wrong = content(), 0, dict[int, str]()
    while True:
        nth += 1
        shutil.rmtree(RESULTS)
        first = in_child(functools.partial(train, data_dir, nth))
        if first == 0:
            break
        half = torn(expected)
        last = in_child(lambda: train(data_dir))
        if half or first != DIED or last != 0 or trouble(expected):
            wrong[nth] = half or trouble(expected) or f"exit status {first}, then {last}"
    print(json.dumps({"changes": nth - 1, "files": sorted(expected), "wrong": wrong}))


if __name__ == "__main__":
    main()
