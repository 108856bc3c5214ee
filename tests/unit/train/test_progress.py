"""Where long work stands, for a terminal, a log, and someone who asks from outside."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedbench.engine.outcome import Progress
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.train import progress
from fedbench.train.progress import (
    Reporter,
    Trail,
    counts,
    duration,
    say,
    seconds_left,
    share_done,
    time_left,
    whereabouts,
)

AT = Progress(
    round=30, rounds=100, begun_at=10, seconds=40.0, latest={"test_auc": 0.75, "samples": 3.0}, first=2.0
)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5300, "88 min"), (5400, "1 h 30 min"),
        (12000, "3 h 20 min"), (2 * 86400, "2 d 0 h"), (187200, "2 d 4 h"),
    ],
)  # fmt: skip
def test_durations_are_said_in_a_fitting_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_time_left_counts_the_rounds_of_this_process_only() -> None:
    assert seconds_left(AT) == pytest.approx(2.0 * 70)
    assert seconds_left(replace(AT, begun_at=0)) == pytest.approx(38 / 29 * 70)


def test_time_left_leaves_the_first_round_out() -> None:
    assert seconds_left(replace(AT, first=21.0)) == pytest.approx((40 - 21) / 19 * 70)


def test_no_time_is_said_after_the_first_round(
    monkeypatch: pytest.MonkeyPatch, cell: Cell, clock: list[float]
) -> None:
    first, store = replace(AT, round=11, first=40.0), Store()
    screen = Screen(terminal=False)
    monkeypatch.setattr(sys, "stdout", screen)
    Reporter()(1, first)
    assert screen.text == "  seed 1: round 11/100, test_auc 0.7500\n"
    Reporter()(1, replace(first, latest={"test_overall_accuracy": 0.5}))
    assert screen.text.endswith("\n  seed 1: round 11/100\n")
    with store.claim(cell.runs[1].key) as folder:
        Trail(folder, lambda _: None)(first)
        assert whereabouts(cell, store) == "seed 1 (2 of 2), round 11/100"


def test_counts_add_up() -> None:
    assert counts(60, 12, 2, 1) == "cells: 12 of 60 done, 2 running, 1 failed, 45 left"
    assert counts(3, 3, 0, 0) == "cells: 3 of 3 done"


class Screen:
    def __init__(self, terminal: bool) -> None:
        self.text, self.terminal = "", terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_each_half_minute(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(terminal=False)
    monkeypatch.setattr(sys, "stdout", screen)
    reporter = Reporter()
    for _ in range(65):
        reporter(1, AT)
        clock[0] += 1
    reporter.clear()
    assert screen.text == "  seed 1: round 30/100, about 2 min left, test_auc 0.7500\n" * 3


def test_a_terminal_has_one_line_that_is_renewed_each_second(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stdout", screen)
    reporter = Reporter()
    for _ in range(10):
        reporter(1, AT)
        clock[0] += 0.5
    reporter.clear()
    assert screen.text.count("\r  seed 1: round 30/100") == 5 and "\n" not in screen.text
    assert screen.text.endswith("\r\033[K")


def test_a_log_that_takes_no_line_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Screen):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    screen = Full(False)
    monkeypatch.setattr(sys, "stdout", screen)
    say("anything")
    assert screen.text == "anything\n", "it was tried"


@pytest.fixture
def cell(project: Path) -> Cell:
    return Plan(configuration.load_config(), "toy").cells()[0]


def test_a_run_in_training_can_be_asked_where_it_is(cell: Cell, clock: list[float]) -> None:
    store, seen = Store(), list[Any]()
    assert whereabouts(cell, store) == ""
    with store.claim(cell.runs[1].key) as folder:
        assert whereabouts(cell, store) == "seed 1 (2 of 2), starting"
        trail = Trail(folder, seen.append)
        trail(AT)
        assert whereabouts(cell, store) == "seed 1 (2 of 2), round 30/100, about 2 min left"
        trail(replace(AT, round=31))
        assert json.loads((folder / "progress.json").read_text())["round"] == 30, "not after every round"
        clock[0] += 6
        trail(replace(AT, round=32))
        assert "round 32/100" in whereabouts(cell, store)
        assert counts(5, 2, 1, 1) == "cells: 2 of 5 done, 1 running, 1 failed, 1 left"
        assert share_done(cell, store) == pytest.approx(0.32 / 2), "of two seeds the first has not begun"
        (folder / "progress.json").write_text("{torn")
        assert share_done(cell, store) == 0.0
        assert whereabouts(cell, store).endswith("starting")
    assert [p.round for p in seen] == [30, 31, 32]
    assert whereabouts(cell, store) == "", "nobody trains it any more"


def test_a_trail_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    seen = list[Any]()
    Trail(tmp_path / "gone", seen.append)(AT)
    assert seen == [AT] and not list(tmp_path.iterdir())


def test_the_time_left_is_that_of_the_cells_left_at_the_pace_of_those_done() -> None:
    assert time_left(2, 6, 10, 40.0) == ", about 2 min left"  # ten seconds a cell
    assert time_left(2, 2, 10, 40.0) == "" == time_left(2, 6, 0, 40.0)
