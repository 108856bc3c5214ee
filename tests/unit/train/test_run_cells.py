"""Many cells one after another: where they stand, and one that fails stops no other and is told at the end."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedbench.commands.cli import app
from fedbench.engine.execution import Progress
from fedbench.errors import UserError, WriteError
from fedbench.spec import RunSpec
from fedbench.store import journal
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train import ahead, progress, training, workers
from fedbench.train.progress import Reporter, Trail

pytestmark = pytest.mark.usefixtures("project")
CELLS = [(p, method) for p in (2, 4) for method in ("Plain", "Proximal", "Plain_too")] + [(8, "Plain")]
NAMES = [f"toy/Digits/p{p}_imratio0.2/{method}" for p, method in CELLS]


def run(monkeypatch: pytest.MonkeyPatch, failing: Mapping[str, BaseException], pattern: str = "*") -> Any:
    """Call ``fedbench run`` with cells of which some raise an error and the others finish at once."""

    def train_cell(cell: Any, config: Any, store: Any, *told: Any) -> list[Record]:
        if cell.name in failing:
            raise failing[cell.name]
        status = ("diverged", "too large") if cell.name == NAMES[5] else ("finished", "")
        return [Record("0", {"seed": 0}, *status, {"test_auc": 0.5}, {}, {})]

    monkeypatch.setattr(training, "train_cell", train_cell)
    return CliRunner().invoke(app, ["run", pattern])


def test_the_others_are_trained_and_the_end_says_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = {NAMES[1]: UserError("no data"), NAMES[3]: ZeroDivisionError("division by zero")}
    result = run(monkeypatch, failing)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("[")] == [
        f"[{number}/7] {name}" for number, name in enumerate(NAMES, 1)
    ]
    assert lines[-1] == "cells: 5 of 7 done, 2 failed"
    assert f"[5/7] {NAMES[4]}  scale demo, 2 failed" in lines
    assert result.stderr[result.stderr.index("error: ") :].splitlines() == [
        "error: 2 of 7 cells failed:",
        f"  {NAMES[1]}: no data",
        f"    alone: fedbench run {NAMES[1]} --scale demo",
        f"  {NAMES[3]}: division by zero",
        f"    alone: fedbench run {NAMES[3]} --scale demo",
    ]
    assert "Traceback" in result.stderr, "of the error nobody expected"
    assert f"{NAMES[5]} seed 0: too large" in result.stderr


@pytest.mark.parametrize(
    ("pattern", "failing", "status", "error"),
    [
        ("*", {}, 3, ""),  # a seed diverged
        (NAMES[0], {}, 0, ""),
        (NAMES[0], {NAMES[0]: UserError("no data")}, 2, "error: no data\n"),
        ("*", {NAMES[1]: WriteError("the disk is full")}, 2, "error: the disk is full\n"),
        ("*", {NAMES[1]: KeyboardInterrupt()}, 130, ""),
    ],
    ids=["diverged", "done", "alone", "full disk", "Ctrl-C"],
)
def test_the_exit_status_says_how_it_ended(
    pattern: str, failing: dict[str, BaseException], status: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes nothing and Ctrl-C end the work at once."""
    result = run(monkeypatch, failing, pattern)
    assert result.exit_code == status and (result.stderr == error or status in (3, 130))
    assert ("[3/7]" in result.stdout) == (status == 3)


@pytest.mark.parametrize(("how", "says"), [("true", "C++ compiler"), ("graph", "compile: graph needs a GPU")])
def test_what_cannot_be_compiled_ends_the_work_before_it_begins(
    how: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = CliRunner().invoke(app, ["run", "*", "--set", f"compile={how}", "--set", "device=cpu"])
    assert result.exit_code == 2 and says in result.stderr and result.stdout == ""


class Pool(workers.Workers):
    """Trains in this process, of the runs that have begun the last first; a ``failing`` one raises an error once."""

    def __init__(self, cores: int, failing: dict[str, BaseException]) -> None:
        super().__init__(cores)
        self.failing, self.order, self.lost = failing, list[str](), list[RunSpec]()

    def killed(self) -> workers.KilledError:
        return workers.KilledError(self.lost)

    def begin(self, spec: RunSpec, config: Config) -> None:
        assert self.free
        self.order.append(_name(spec))
        self._begun[Future()] = spec

    def finished(self) -> list[tuple[RunSpec, Future[Record]]]:
        future, spec = [*self._begun.items()][-1]
        error = self.failing.pop(_name(spec), None)
        if isinstance(error, BrokenProcessPool):
            self.lost.append(spec)
            raise error
        if error is None:
            future.set_result(training.train_run(spec, configuration.load_config(), Store()))
        else:
            future.set_exception(error)
        return [(self._begun.pop(future), future)]


def _name(run: RunSpec) -> str:
    return f"p{run.train.period} {run.method} {run.seed}"


def run_apart(
    monkeypatch: pytest.MonkeyPatch, failing: Mapping[str, BaseException], *arguments: str
) -> tuple[Any, list[list[str]]]:
    """Call ``fedbench run`` with such pools for processes, and return the result and what began in each."""
    pools, left = list[Pool](), dict(failing)

    @contextlib.contextmanager
    def pretended(cores: int) -> Iterator[Pool]:
        pools.append(Pool(cores, left))
        yield pools[-1]

    monkeypatch.setattr(ahead, "workers", pretended)
    return CliRunner().invoke(app, ["run", *arguments]), [pool.order for pool in pools]


def test_seeds_share_the_cores_and_one_that_is_left_alone_is_trained_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = [
        run_apart(monkeypatch, {}, NAMES[0], "--cores", cores, "--set", f"seeds={seeds}")[1]
        for seeds, cores in (("[1]", "3"), ("[1, 2, 3]", "3"), ("[1, 2, 3, 4, 5]", "1"))
    ]
    assert begun == [[], [["p2 fedavg 2", "p2 fedavg 3"]], []]
    assert len(Store().keys()) == 5


def test_free_cores_train_the_next_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails before the turn of its cell is tried again then; one that fails in it fails."""
    failing = {"p2 fedprox 1": UserError("no room"), "p2 fedavg 1": UserError("no data")}
    result, (begun,) = run_apart(monkeypatch, failing, "*", "--cores", "3")
    assert begun[:4] == ["p2 fedavg 0", "p2 fedavg 1", "p2 fedprox 0", "p2 fedprox 1"]
    assert begun[-1] == "p2 fedprox 1" and len(begun) == 15 and len({*begun}) == 14
    assert result.exit_code == 2 and "cells: 6 of 7 done, 1 failed" in result.stdout
    assert f"{NAMES[0]}: no data" in result.stderr and "no room" not in result.output
    assert len(Store().keys()) == 13, "the other seed of a cell that fails is trained"


@pytest.mark.parametrize("own_run", [True, False])
def test_a_killed_process_ends_its_own_cell_alone(own_run: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that trains for a later cell ends none: both cells go on with new processes."""
    killed = "p2 fedavg 1" if own_run else "p4 fedprox 1"
    result, pools = run_apart(monkeypatch, {killed: BrokenProcessPool()}, "*", "--cores", "3")
    assert pools[0][:2] == ["p2 fedavg 0", "p2 fedavg 1"] and len(pools[0]) == (14 if own_run else 10)
    again = {name for begun in pools[1:] for name in begun}
    assert again & {*pools[0]} == (set() if own_run else {"p2 fedavg 0", "p2 fedavg 1", killed})
    assert result.exit_code == (2 if own_run else 0)
    assert (f"{NAMES[0]}: a training was killed" in result.stderr) == own_run
    assert len(Store().keys()) == (12 if own_run else 14)


def test_cells_that_are_trained_at_a_time_have_the_bytes_of_one_after_another() -> None:
    made = []
    for cores in ("1", "2"):
        assert CliRunner().invoke(app, ["run", "p2", "--cores", cores]).exit_code == 0
        made.append({path.name: path.read_bytes() for path in Path("results/cells").rglob("*.json")})
        pids = {line["pid"] for line in journal.read_journal(Path("results/runs"))}
        shutil.rmtree("results")
    assert made[0] == made[1] and len(made[0]) == 3
    assert len(pids) == 2 and os.getpid() not in pids


def test_the_log_of_a_number_says_which_file_and_which_command() -> None:
    given = ["--set", "train.iterations=4", "--set", "seeds=[1, 2]"]
    said = CliRunner().invoke(app, ["run", NAMES[0], *given]).stdout
    result = Path("results/cells/demo") / f"{NAMES[0]}.json"
    for run in json.loads(result.read_text())["runs"]:
        folder = Path("results/runs") / run["key"]
        assert f"  seed {run['seed']}: finished" in said and f"({folder})" in said and folder.is_dir()
    (line,) = [line for line in said.splitlines() if line.startswith(f"  {result}, made by: ")]
    command = shlex.split(line.partition("made by: ")[2])
    assert command[:3] == ["fedbench", "run", NAMES[0]]
    before = result.read_bytes()
    shutil.rmtree(folder)  # one of its two runs is trained again
    CliRunner().invoke(app, command[1:])
    assert result.read_bytes() == before, "trained again to the same bytes"

    result.unlink()
    left = folder.with_name(f"{folder.name}.unfinished")
    left.mkdir()  # a process was killed before it cleaned up
    # of what is in the store, without PyTorch, which takes seconds to import
    program = "import sys; sys.modules['torch'] = None; from fedbench.commands.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *command[1:]], check=True)
    assert result.read_bytes() == before, "the command in the log makes the same file"
    assert not left.exists()


AT = Progress(
    round=30, rounds=100, begun_at=10, seconds=40.0, latest={"test_auc": 0.75, "samples": 3.0}, first=2.0
)


def test_durations_are_said_in_a_fitting_unit() -> None:
    for seconds, said in (
        (0.2, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5300, "88 min"), (5400, "1 h 30 min"),
        (12000, "3 h 20 min"), (2 * 86400, "2 d 0 h"), (187200, "2 d 4 h"),
    ):  # fmt: skip
        assert progress.duration(seconds) == said


def test_time_left_counts_the_rounds_of_this_process_but_its_first() -> None:
    assert progress.seconds_left(AT) == pytest.approx(2.0 * 70)
    assert progress.seconds_left(replace(AT, begun_at=0)) == pytest.approx(38 / 29 * 70)
    assert progress.seconds_left(replace(AT, first=21.0)) == pytest.approx((40 - 21) / 19 * 70)
    assert progress.time_left(2, 6, 10, 40.0) == ", about 2 min left"  # ten seconds a cell
    assert progress.time_left(2, 2, 10, 40.0) == "" == progress.time_left(2, 6, 0, 40.0)
    assert progress.counts(60, 12, 2, 1) == "cells: 12 of 60 done, 2 running, 1 failed, 45 left"
    assert progress.counts(3, 3, 0, 0) == "cells: 3 of 3 done"


class Screen(io.StringIO):
    """A terminal or a log, perhaps on a full disk."""

    def __init__(self, terminal: bool = False, full: bool = False) -> None:
        super().__init__()
        self._terminal, self._full = terminal, full

    def isatty(self) -> bool:
        return self._terminal

    def flush(self) -> None:
        if self._full:
            raise OSError(28, "No space left on device")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("terminal", [True, False])
def test_a_log_gets_a_line_each_half_minute_and_a_terminal_has_one_renewed_each_second(
    terminal: bool, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    reporter = Reporter()
    for _ in range(130):
        reporter(1, AT)
        clock[0] += 0.5
    reporter.clear()
    line = "  seed 1: round 30/100, about 2 min left, test_auc 0.7500"
    assert screen.getvalue() == (f"\r{line}\033[K" * 65 + "\r\033[K" if terminal else f"{line}\n" * 3)


def test_no_time_is_said_after_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    first, screen = replace(AT, round=11, first=40.0), Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    Reporter()(1, first)
    Reporter()(1, replace(first, latest={"test_overall_accuracy": 0.5}))
    assert screen.getvalue() == "  seed 1: round 11/100, test_auc 0.7500\n  seed 1: round 11/100\n"


def test_a_log_or_a_trail_that_cannot_be_written_does_not_stop_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, seen = Screen(full=True), list[Any]()
    monkeypatch.setattr(sys, "stdout", screen)
    progress.say("anything")
    assert screen.getvalue() == "anything\n", "it was tried"
    monkeypatch.setattr(sys, "stdout", None)  # closed: `fedbench run CELL >&-`
    Reporter()(1, AT)
    Trail(tmp_path / "gone", seen.append)(AT)
    assert seen == [AT] and not (tmp_path / "gone").exists()


def test_a_run_in_training_can_be_asked_where_it_is(project: Path, clock: list[float]) -> None:
    cell, store, seen = Plan(configuration.load_config(), "toy").cells()[0], Store(), list[Any]()
    assert progress.whereabouts(cell, store) == ""
    with store.claim(cell.runs[1].key) as folder:
        assert progress.whereabouts(cell, store) == "seed 1 (2 of 2), starting"
        trail = Trail(folder, seen.append)
        trail(AT)
        assert progress.whereabouts(cell, store) == "seed 1 (2 of 2), round 30/100, about 2 min left"
        trail(replace(AT, round=31))
        assert json.loads((folder / "progress.json").read_text())["round"] == 30, "not after every round"
        clock[0] += 6
        trail(replace(AT, round=32))
        assert "round 32/100" in progress.whereabouts(cell, store)
        done = progress.share_done(cell, store)
        assert done == pytest.approx(0.32 / 2), "of two seeds the first has not begun"
        (folder / "progress.json").write_text("{torn")
        assert progress.share_done(cell, store) == 0.0
        assert progress.whereabouts(cell, store).endswith("starting")
    assert [at.round for at in seen] == [30, 31, 32]
    assert progress.whereabouts(cell, store) == "", "nobody trains it any more"
