"""Where long work stands, for a terminal, a log, and someone who asks from outside."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedbench.engine.execution import Progress
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import progress
from fedbench.train.progress import Reporter, Trail

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


class Screen:
    """What stands on a terminal or in a log."""

    def __init__(self, terminal: bool = False, full: bool = False) -> None:
        self.text, self._terminal, self._full = "", terminal, full

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

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
    assert screen.text == (f"\r{line}\033[K" * 65 + "\r\033[K" if terminal else f"{line}\n" * 3)


def test_no_time_is_said_after_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    first, screen = replace(AT, round=11, first=40.0), Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    Reporter()(1, first)
    Reporter()(1, replace(first, latest={"test_overall_accuracy": 0.5}))
    assert screen.text == "  seed 1: round 11/100, test_auc 0.7500\n  seed 1: round 11/100\n"


def test_a_log_or_a_trail_that_cannot_be_written_does_not_stop_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, seen = Screen(full=True), list[Any]()
    monkeypatch.setattr(sys, "stdout", screen)
    progress.say("anything")
    assert screen.text == "anything\n", "it was tried"
    Trail(tmp_path / "gone", seen.append)(AT)
    assert seen == [AT] and not list(tmp_path.iterdir())


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
        assert progress.share_done(cell, store) == pytest.approx(0.32 / 2), (
            "of two seeds the first has not begun"
        )
        (folder / "progress.json").write_text("{torn")
        assert progress.share_done(cell, store) == 0.0
        assert progress.whereabouts(cell, store).endswith("starting")
    assert [at.round for at in seen] == [30, 31, 32]
    assert progress.whereabouts(cell, store) == "", "nobody trains it any more"
