"""A run that is told to stop saves what it has, ends by the signal, and later goes on to the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.engine.outcome import Progress
from fedbench.spec import RunSpec
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import signals
from fedbench.train.training import train_run

CONFIG = {"checkpoint_seconds": 1e9}  # none but the one that a stop writes

PROGRAM = """
import os, signal
from fedbench.study.plan import Plan
from fedbench.study import configuration
from fedbench.store.runs import Store
from fedbench.train.training import train_run

def stop(progress):
    if progress.round == 3:
        os.kill(os.getpid(), signal.SIGTERM)

config = configuration.load_config(overrides={"checkpoint_seconds": 1e9})
train_run(Plan(config).cells("table1")[0].runs[0], config, Store(), stop)
"""


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Undo what a shell does to programs in the background: they start with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def first_run() -> RunSpec:
    run = Plan(configuration.load_config(), "toy").cells("table1")[0].runs[0]
    assert run.train.period == 2 and run.train.iterations == 8, "four rounds"
    return run


def goes_on_to_the_same_bytes(tmp_path: Path) -> list[tuple[int, int]]:
    """Finish the stopped run, compare it with an undisturbed one, and return the rounds it made: (begun at, round)."""
    made: list[tuple[int, int]] = []
    config = configuration.load_config(overrides=CONFIG)
    record = train_run(first_run(), config, Store(), lambda p: made.append((p.begun_at, p.round)))
    undisturbed = train_run(first_run(), config, Store(tmp_path / "other"))
    assert record.files == undisturbed.files and record.metrics == undisturbed.metrics
    return made


@pytest.mark.usefixtures("project")
def test_a_terminated_program_ends_by_the_signal_with_its_work_saved(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert "seed 0: stopped after round 3 of 4; the same command goes on from here" in done.stdout
    assert Store().checkpoint(first_run().key).exists() and Store().load(first_run().key) is None
    assert goes_on_to_the_same_bytes(tmp_path) == [(3, 4)]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("stopped", "left"), [(1, [2, 3, 4]), (4, [])])
def test_ctrl_c_saves_and_in_the_last_round_the_run_is_finished(
    stopped: int, left: list[int], tmp_path: Path
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.round == stopped:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_run(first_run(), configuration.load_config(overrides=CONFIG), Store(), interrupt)
    assert goes_on_to_the_same_bytes(tmp_path) == [(stopped, made) for made in left]


def test_a_second_signal_is_not_held_back() -> None:
    after = list[bool]()
    with pytest.raises(KeyboardInterrupt), signals.held_back() as came:
        os.kill(os.getpid(), signal.SIGINT)
        after.append(came())
        os.kill(os.getpid(), signal.SIGINT)
        after.append(came())
    assert after == [True], "the second signal acts at once"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ignored_signals_stay_ignored_and_other_threads_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals.held_back() as came:
            os.kill(os.getpid(), signal.SIGINT)
            assert not came()
    finally:
        signal.signal(signal.SIGINT, before)

    answers = []

    def block() -> None:
        with signals.held_back() as came:
            answers.append(came())

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert answers == [False]
