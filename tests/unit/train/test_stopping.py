"""Several trainings at a time, and being told to stop: what was trained is saved, and nobody is left behind."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, rewrite

import forks
from fedbench.engine.execution import Progress
from fedbench.errors import UserError
from fedbench.files import alive
from fedbench.spec import RunSpec
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import workers
from fedbench.train.training import held_back, train_run
from fedbench.train.tune.trials import trial_specs
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")
RUNS = Path("results/runs")
PROGRAM = """
import os
from pathlib import Path
from fedbench.commands.cli import main

Path("tuning").write_text(str(os.getpid()))
main()
"""


def test_several_at_a_time_choose_what_one_after_another_chose() -> None:
    rewrite(tune=PAPER["tune"] | {"seeds": [100, 101]})
    config, said = configuration.load_config(), [list[str](), list[str]()]
    (path,) = tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], said[0].append)
    alone = path.read_text()
    curves = {run.name: (run / "curve.csv").read_bytes() for run in RUNS.iterdir() if run.is_dir()}
    path.unlink()
    shutil.rmtree(RUNS)
    before = signal.getsignal(signal.SIGTERM)
    tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], said[1].append, cores=3)
    assert signal.getsignal(signal.SIGTERM) is before
    assert path.read_text() == alone
    assert {run.name: (run / "curve.csv").read_bytes() for run in RUNS.iterdir() if run.is_dir()} == curves
    assert sorted(said[0]) == sorted(said[1])
    pids = {json.loads(line)["pid"] for line in (RUNS / "journal.jsonl").read_text().splitlines()}
    assert len(pids) > 1 and str(os.getpid()) not in pids


def test_a_mistake_in_a_process_of_its_own_is_a_line_here() -> None:
    rewrite(tune=PAPER["tune"] | {"validation": 0.001})  # less than one sample of a class
    with pytest.raises(UserError, match=r"no positive sample.*raise data\.validation") as raised:
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], print, cores=2)
    assert multiprocessing.active_children() == [], raised


class TwoWordsError(Exception):
    """As libraries have them: pickle cannot make it again from its message alone."""

    def __init__(self, word: str, other: str) -> None:
        super().__init__(f"{word} {other}")


def test_an_error_of_any_kind_travels_to_the_process_that_began_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise TwoWordsError("no", "way")

    monkeypatch.setattr(workers, "train_run", fail)
    with ThreadPoolExecutor() as executor, pytest.raises(Exception, match="no way") as raised:
        pool = workers.Workers(2, executor)
        pool.begin(first_run(), configuration.load_config())
        pool.finished()[0][1].result()
    assert str(pickle.loads(pickle.dumps(raised.value))) == "TwoWordsError: no way"


class Tuning(subprocess.Popen[str]):
    """A tuning; ``group`` is its process group, with all that it starts."""

    group: int


def begin() -> tuple[Tuning, list[int]]:
    """Start a tuning and return it when both of its runs train, with the processes that train them."""
    tuning = start()
    while len([*RUNS.glob("*.unfinished/progress.json")]) < 2:
        assert tuning.poll() is None, tuning.communicate()
        time.sleep(0.05)
    lines = (RUNS / "journal.jsonl").read_text().splitlines()
    return tuning, [int(json.loads(line)["pid"]) for line in lines]


def start() -> Tuning:
    """Start a tuning that takes hours, two runs at a time."""
    rewrite(tune=PAPER["tune"] | {"train": {"epochs": None, "iterations": 10_000_000, "evaluations": 1}})
    programs, group = forks.group()
    tuning = Tuning(
        [programs / "python", "-c", PROGRAM, "tune", "Digits", "Plain", "--paper", "toy", "--cores", "2",
         "--set", "checkpoint_seconds=1000000000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    tuning.group = group
    return tuning


def ended(tuning: Tuning) -> tuple[str, str]:
    """Wait for the end and return what was printed; whoever is left is killed."""
    try:
        return tuning.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tuning.group, signal.SIGKILL)


@pytest.mark.parametrize(
    ("told", "everybody"), [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGINT, True)]
)
def test_who_is_told_to_stop_tells_the_others_which_save_their_work(
    told: signal.Signals, everybody: bool
) -> None:
    """A terminal and a scheduler tell everybody, who are told again by the process that began them."""
    tuning, pids = begin()
    if told == signal.SIGINT:
        os.killpg(tuning.group, told)
    else:
        for pid in [int(Path("tuning").read_text()), *(pids if everybody else [])]:
            os.kill(pid, told)
    out, err = ended(tuning)
    assert tuning.returncode in (128 + told, -told), err
    assert len(pids) == 2 and not any(map(alive, pids))
    assert len([*RUNS.glob("*.unfinished/checkpoint.pt")]) == 2
    assert out.count("the same command goes on from here") == 2 and "Traceback" not in err


@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.0])
def test_ctrl_c_while_processes_start_reaches_only_the_process_that_starts_them(seconds: float) -> None:
    tuning = start()
    while not subprocess.run(
        ["pgrep", "-g", str(tuning.group), "-f", "forkserver"], check=False, capture_output=True
    ).stdout:
        assert tuning.poll() is None
    time.sleep(seconds)  # of the two or three that the import of PyTorch takes
    os.killpg(tuning.group, signal.SIGINT)
    _, err = ended(tuning)
    assert tuning.returncode in (128 + signal.SIGINT, -signal.SIGINT) and "Traceback" not in err, err


def test_a_scheduler_that_stops_the_work_while_processes_start_is_heeded_once_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One whose start is broken off would end in a traceback: what it shares with the others is gone."""
    started = []

    class Told(ProcessPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            os.kill(os.getpid(), signal.SIGTERM)
            started.append(super().submit(*args, **kwargs))
            return started[-1]

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Told)
    with pytest.raises(SystemExit), workers.workers(2):
        pytest.fail("it was not heeded")
    assert len(started) == 2 and multiprocessing.active_children() == []


@pytest.mark.parametrize(("which", "how"), [(0, signal.SIGKILL), (1, signal.SIGSEGV)])
def test_a_training_that_is_killed_ends_the_others_with_a_line(which: int, how: signal.Signals) -> None:
    tuning, pids = begin()
    held = {path.read_text().split()[0]: path for path in RUNS.glob("*.unfinished/lock")}
    os.kill(pids[which], how)
    _, err = ended(tuning)
    assert tuning.returncode == 2
    said = err.splitlines()[-1]
    assert said.startswith("error: a training was killed") and "Traceback" not in err
    trials = [
        spec
        for lr in (0.01, 0.1)
        for spec in trial_specs(configuration.load_paper("toy"), "Digits", "Plain", {"lr": lr})
    ]
    named = [run.params for run in trials if f"{run.params} on digits, seed {run.seed}" in said]
    lost = [run.params for run in trials if run.key == held[str(pids[which])].parent.name.partition(".")[0]]
    assert named == lost and len(lost) == 1, said
    assert not any(map(alive, pids)) and len([*RUNS.glob("*.unfinished/checkpoint.pt")]) == 1


def test_every_process_is_watched_before_the_first_run() -> None:
    """Killed where no run has ended, a process would else be missed until another one's does."""
    with (
        pytest.raises(UserError, match="before it began"),
        workers.workers(2) as pool,
    ):
        first, _ = multiprocessing.active_children()
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        first.join()
        pool.begin(first_run(), configuration.load_config())
        pool.finished()


def test_trainings_end_with_the_process_that_began_them_and_save_their_work() -> None:
    tuning, pids = begin()
    os.kill(int(Path("tuning").read_text()), signal.SIGKILL)
    while any(map(alive, pids)):
        time.sleep(0.05)
    ended(tuning)
    assert len([*RUNS.glob("*.unfinished/checkpoint.pt")]) == 2


@pytest.fixture(autouse=True)
def signals_interrupt() -> Iterator[None]:
    """Undo what a shell does to programs in the background, which start with Ctrl-C ignored; keep this process."""
    told = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in told]
    yield
    for number, handler in zip(told, before, strict=True):
        signal.signal(number, handler)


def first_run() -> RunSpec:
    run = Plan(configuration.load_config(), "toy").cells("table1")[0].runs[0]
    assert run.train.period == 2 and run.train.iterations == 8, "four rounds"
    return run


@pytest.mark.parametrize(
    ("told", "stopped", "left"),
    [(signal.SIGINT, 1, [2, 3, 4]), (signal.SIGTERM, 3, [4]), (signal.SIGINT, 4, [])],
)
def test_a_signal_saves_a_run_which_goes_on_to_the_same_bytes_and_in_the_last_round_is_finished(
    told: signal.Signals, stopped: int, left: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(progress: Progress) -> None:
        if progress.round == stopped:
            os.kill(os.getpid(), told)

    made, store, run = list[tuple[int, int]](), Store(), first_run()
    config = configuration.load_config(overrides={"checkpoint_seconds": 1e9})  # none but that of a stop
    with pytest.raises(KeyboardInterrupt):
        train_run(run, config, store, tell)
    assert ("seed 0: stopped after round" in capsys.readouterr().out) == (stopped < 4)
    assert store.checkpoint(run.key).exists() == (store.load(run.key) is None) == (stopped < 4)
    record = train_run(run, config, store, lambda p: made.append((p.begun_at, p.round)))
    assert made == [(stopped, round_) for round_ in left]
    undisturbed = train_run(run, config, Store(tmp_path / "other"))
    assert record.files == undisturbed.files and record.metrics == undisturbed.metrics


def test_a_second_ctrl_c_acts_at_once_and_a_second_sigterm_once_when_the_work_is_saved() -> None:
    """A scheduler tells all processes, and the one that began the others tells them again."""
    answers, over = list[bool](), False
    with pytest.raises(KeyboardInterrupt), held_back() as came:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            answers.append(came())
    assert answers == [True] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGTERM, lambda *_: answers.append(over))
    with held_back() as came:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
        assert came()
        over = True
    assert answers == [True, True], "once, at the end"


def test_ignored_signals_stay_ignored_and_other_threads_are_left_alone() -> None:
    def came() -> bool:
        with held_back() as told:
            os.kill(os.getpid(), signal.SIGINT)
            return told()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ThreadPoolExecutor() as other:
        assert not came() and not other.submit(came).result()
