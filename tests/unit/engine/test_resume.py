"""The same bytes again, and after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from world import CPU, METHODS, images, saved, simulate, spec

from fedbench.engine import checkpoint
from fedbench.engine.execution import Execution
from fedbench.engine.outcome import Outcome, Progress
from fedbench.engine.simulate import Simulation
from fedbench.spec import RunSpec
from fedbench.store.runs import csv_text

RESNET = {"network": "resnet20", "options": {"blocks": 1}}
TWO = {"rule": "random", "clients": 2}


def bytes_of(outcome: Outcome) -> tuple[str, str, dict[str, float]]:
    """All that a run leaves behind but times."""
    return csv_text(outcome.curve), csv_text(outcome.clients), outcome.metrics


class StoppedError(Exception):
    """Stands for a killed process."""


def interrupted(run: RunSpec, arrays: Any, path: Path, at: set[int], chunk: int | None = 1) -> Outcome:
    """Run with a checkpoint each round, dying in the given rounds before their checkpoint is written."""

    def die(progress: Progress) -> None:
        if progress.round in at:
            at.remove(progress.round)
            raise StoppedError

    while True:
        try:
            return Simulation(run, arrays, CPU, saved(path, die, chunk)).run()
        except StoppedError:
            pass


class TestSameBytes:
    @pytest.mark.parametrize("method", METHODS)
    def test_a_run_gives_the_same_bytes_again_and_another_seed_does_not(self, method: str) -> None:
        arrays = images()
        _, first = simulate(spec(method, participation=TWO), arrays)
        torch.manual_seed(99)
        np.random.seed(99)  # nothing global is read
        _, second = simulate(spec(method, participation=TWO), arrays)
        _, other = simulate(spec(method, participation=TWO, seed=1), arrays)
        assert bytes_of(first) == bytes_of(second)
        assert first.curve[-1]["train_loss"] != other.curve[-1]["train_loss"]

    @pytest.mark.parametrize("method", METHODS)
    def test_resumed_equals_undisturbed(self, method: str, tmp_path: Path) -> None:
        """Dying in round 1 (no checkpoint yet), 3, 4 (after a decay) and in the last round."""
        run = spec(method, participation=TWO, rounds=7, decay_at=[0.45, 0.8], evaluations=3)
        _, undisturbed = simulate(run, images())
        resumed = interrupted(run, images(), tmp_path / "checkpoint.pt", {1, 3, 4, 7})
        assert bytes_of(resumed) == bytes_of(undisturbed)
        assert undisturbed.status == "finished"

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("coda", {"ascent": "stage", "stage_start": "average"}),
            ("codasca", {"anchor": "average"}),
            ("codasca", {"anchor": "own_average"}),
        ],
    )
    def test_resumed_equals_undisturbed_with_averages_over_a_stage(
        self, method: str, params: dict[str, str], tmp_path: Path
    ) -> None:
        run = spec(method, params, rounds=7, participation=TWO, decay_at=[0.4, 0.8])
        _, undisturbed = simulate(run, images())
        assert bytes_of(interrupted(run, images(), tmp_path / "checkpoint.pt", {1, 4, 6})) == bytes_of(
            undisturbed
        )

    @pytest.mark.parametrize("chunk", [1, None])
    def test_resumed_equals_undisturbed_with_batch_norm_augmentation_and_local_epochs(
        self, chunk: int | None, tmp_path: Path
    ) -> None:
        arrays = images(side=8)
        train = {"period": None, "local_epochs": 2, "augment": "pad_crop_flip", "rounds": 4, **RESNET}
        run = spec("scaffold", participation=TWO, **train)
        _, undisturbed = simulate(run, arrays, chunk)
        resumed = interrupted(run, arrays, tmp_path / "checkpoint.pt", {2, 3}, chunk)
        assert bytes_of(resumed) == bytes_of(undisturbed)

    def test_resuming_does_not_start_over(self, tmp_path: Path) -> None:
        rounds, stop = list[tuple[int, int]](), [5]

        def on_round(progress: Progress) -> None:
            rounds.append((progress.begun_at, progress.round))
            if stop and progress.round == stop[0]:
                raise StoppedError(stop.pop())

        execution = saved(tmp_path / "checkpoint.pt", on_round)
        with pytest.raises(StoppedError):
            Simulation(spec(rounds=6), images(), CPU, execution).run()
        Simulation(spec(rounds=6), images(), CPU, execution).run()
        assert rounds == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (4, 5), (4, 6)]

    @pytest.mark.parametrize("damage", ["noise", "another run's", "another format"])
    def test_an_unusable_checkpoint_is_set_aside_and_the_run_starts_again(
        self, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, run = tmp_path / "checkpoint.pt", spec("local_scgdam", rounds=4)
        _, undisturbed = simulate(run, images())

        def die(progress: Progress) -> None:
            if progress.round == 3:
                raise StoppedError

        other = spec("local_scgdam", rounds=4, seed=5) if damage == "another run's" else run
        with monkeypatch.context() as patch, pytest.raises(StoppedError):
            if damage == "another format":
                patch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
            Simulation(other, images(), CPU, saved(path, die)).run()
        if damage == "noise":
            content = path.read_bytes()
            path.write_bytes(content[:200] + bytes(200) + content[400:])
        left, rounds = path.read_bytes(), list[int]()
        how = Execution(checkpoint=path, checkpoint_seconds=1e9, on_round=lambda p: rounds.append(p.round))
        assert bytes_of(Simulation(run, images(), CPU, how).run()) == bytes_of(undisturbed)
        assert rounds == [1, 2, 3, 4]
        assert path.with_name("checkpoint.pt.unusable").read_bytes() == left and not path.exists()
