"""The same bytes again and after a stop; checkpoints on disk; what a run leaves beside its numbers."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from world import CPU, METHODS, KilledError, images, interrupted, saved, simulate, spec

from fedbench.engine import checkpoint
from fedbench.engine.execution import Execution, Outcome, Progress
from fedbench.engine.simulate import Simulation
from fedbench.errors import ReadError
from fedbench.objectives.metrics import auc
from fedbench.spec import RunSpec
from fedbench.store.runs import csv_text
from fedbench.tasks import classification

TWO = {"rule": "random", "clients": 2}
STAGES = {"rounds": 7, "participation": TWO, "decay_at": [0.45, 0.8]}
CYCLES = {"rounds": None, "cycles": 3, "participation": {"rule": "cyclic", "clients": 1, "groups": 3}}
RESUMED: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    *((method, {}, STAGES) for method in METHODS),
    ("coda", {"ascent": "stage", "stage_start": "average"}, STAGES),
    ("codasca", {"anchor": "average"}, STAGES),
    ("codasca", {"anchor": "own_average"}, STAGES),
    *((method, {}, CYCLES) for method in ("a_fedavg", "a_scaffold", "coda_plus")),
]
"""Methods in rounds, those that average over a stage, and those that do something once a cycle."""


def bytes_of(outcome: Outcome) -> tuple[str, str, dict[str, float]]:
    """All that a run leaves behind but times."""
    return csv_text(outcome.curve), csv_text(outcome.clients), outcome.metrics


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

    @pytest.mark.parametrize(("method", "params", "train"), RESUMED)
    def test_resumed_equals_undisturbed(
        self, method: str, params: dict[str, str], train: dict[str, Any], tmp_path: Path
    ) -> None:
        """Dying in round 1 (no checkpoint yet), 3, 4 (after a decay, in mid-cycle) and 7 (the last, in mid-cycle)."""
        run = spec(method, params, evaluations=3, **train)
        _, undisturbed = simulate(run, images())
        _, resumed = interrupted(run, images(), tmp_path / "checkpoint.pt", {1, 3, 4, 7})
        assert bytes_of(resumed) == bytes_of(undisturbed)
        assert undisturbed.status == "finished"

    @pytest.mark.usefixtures("norm")
    @pytest.mark.parametrize("chunk", [1, None])
    def test_resumed_equals_undisturbed_with_batch_norm_augmentation_and_local_epochs(
        self, chunk: int | None, tmp_path: Path
    ) -> None:
        arrays = images(side=8)
        train = {"period": None, "local_epochs": 2, "augment": "pad_crop_flip", "rounds": 4}
        run = spec("scaffold", participation=TWO, **train)
        _, undisturbed = simulate(run, arrays, chunk)
        _, resumed = interrupted(run, arrays, tmp_path / "checkpoint.pt", {2, 3}, chunk)
        assert bytes_of(resumed) == bytes_of(undisturbed)

    def test_resuming_does_not_start_over(self, tmp_path: Path) -> None:
        rounds, stop = list[tuple[int, int]](), [5]

        def on_round(progress: Progress) -> None:
            rounds.append((progress.begun_at, progress.round))
            if stop and progress.round == stop[0]:
                raise KilledError(stop.pop())

        execution = saved(tmp_path / "checkpoint.pt", on_round)
        with pytest.raises(KilledError):
            Simulation(spec(rounds=6), images(), CPU, execution).run()
        Simulation(spec(rounds=6), images(), CPU, execution).run()
        assert rounds == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (4, 5), (4, 6)]

    @pytest.mark.parametrize("damage", ["noise", "another run's"])
    def test_an_unusable_checkpoint_is_set_aside_and_the_run_starts_again(
        self, damage: str, tmp_path: Path
    ) -> None:
        """What else makes one unusable is in tests/faults/test_checkpoints.py."""
        path, run = tmp_path / "checkpoint.pt", spec("local_scgdam", rounds=4)
        _, undisturbed = simulate(run, images())

        def die(progress: Progress) -> None:
            if progress.round == 3:
                raise KilledError

        other = spec("local_scgdam", rounds=4, seed=5) if damage == "another run's" else run
        with pytest.raises(KilledError):
            Simulation(other, images(), CPU, saved(path, die)).run()
        if damage == "noise":
            content = path.read_bytes()
            path.write_bytes(content[:200] + bytes(200) + content[400:])
        left, rounds = path.read_bytes(), list[int]()
        how = Execution(checkpoint=path, checkpoint_seconds=1e9, on_round=lambda p: rounds.append(p.round))
        assert bytes_of(Simulation(run, images(), CPU, how).run()) == bytes_of(undisturbed)
        assert rounds == [1, 2, 3, 4]
        assert path.with_name("checkpoint.pt.unusable").read_bytes() == left and not path.exists()


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.ESTALE, "Stale file handle"),
    ],
)
def test_one_that_cannot_be_read_just_now_is_kept(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise error

    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"round": 1})
    with monkeypatch.context() as patch, pytest.raises(ReadError, match=r"is kept"):
        patch.setattr(torch, "load", fails)
        checkpoint.load(path, "k", CPU, {})
    assert checkpoint.load(path, "k", CPU, {}) == {"round": 1}


@pytest.mark.parametrize("floats", [100, 4_000, 16_000, 60_000])
def test_a_damaged_one_is_set_aside_wherever_it_ends(floats: int, tmp_path: Path) -> None:
    """A torn file can end in a seek before its beginning, which is an OSError and yet the file's own fault."""
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"x": torch.ones(floats)})
    content = path.read_bytes()
    for part in range(1, 20):
        path.write_bytes(content[: len(content) * part // 20])
        assert checkpoint.load(path, "k", CPU, {"x": torch.ones(floats)}) is None and not path.exists()


def test_a_checkpoint_is_data_not_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    path = tmp_path / "checkpoint.pt"
    with path.open("wb") as file:
        checkpoint.pack({"format": checkpoint.FORMAT, "key": "k", "state": Evil()}, file)
    assert checkpoint.load(path, "k", CPU, {}) is None
    assert not (tmp_path / "ran").exists()


def test_an_interrupted_write_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, "k", {"round": 1})

    def half(content: Any, file: Any) -> None:
        file.write(b"half of it")
        raise KilledError

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KilledError):
        checkpoint.save(path, "k", {"round": 2})
    assert checkpoint.load(path, "k", CPU, {}) == {"round": 1}


@pytest.mark.parametrize(("wanted", "saving", "expected"), [(30, 0.1, 30), (30, 4, 80), (0, 4, 0)])
def test_large_checkpoints_are_written_less_often(wanted: float, saving: float, expected: float) -> None:
    """At most a 20th of the time goes into them; 0 seconds mean each round, whatever it costs."""
    from fedbench.engine.simulate import pause

    assert pause(wanted, saving) == expected


def kept(run: RunSpec, path: Path | None = None, stop_after: int = 0, keep: bool = True) -> Outcome | None:
    """A run that keeps its model; None where it was stopped, with a checkpoint after each round."""

    def stop(progress: Progress) -> None:
        if progress.round == stop_after:
            raise KilledError

    how = Execution(checkpoint=path, checkpoint_seconds=0, on_round=stop, keep=keep)
    try:
        return Simulation(run, images(validation=20, side=8), CPU, how).run()
    except KilledError:
        return None


@pytest.mark.usefixtures("norm")
@pytest.mark.parametrize("method", ["fedavg", "coda", "local_scgdam"])
def test_the_scores_give_the_reported_metrics_to_the_digit(method: str) -> None:
    run = spec(method)
    outcome = kept(run)
    assert outcome is not None and outcome.predictions is not None and outcome.model is not None
    for part, (labels, scores) in outcome.predictions.items():
        assert auc(scores[:, 0], labels) == outcome.metrics[f"{part}_auc"]
    _, without = simulate(run, images(validation=20, side=8))
    assert without.predictions is None and without.model is None
    assert without.metrics == outcome.metrics, "keeping changes no number"
    assert csv_text(without.curve) == csv_text(outcome.curve)


def selected() -> RunSpec:
    """A run whose reported evaluation is neither its first nor its last."""
    run = spec("fedavg", {"lr": 6.0}, rounds=6, evaluations=6)
    held_out = run.data.model_copy(update={"validation": 0.2})
    return run.model_copy(
        update={"data": held_out, "train": run.train.model_copy(update={"select": "val_auc"})}
    )


@pytest.mark.parametrize("stop_after", [0, 4])
def test_of_a_selected_row_the_scores_are_its_own(stop_after: int, tmp_path: Path) -> None:
    """Step sizes so large that the last evaluation is not the best; a stop in between changes nothing."""
    run = selected()
    if stop_after:
        assert kept(run, tmp_path / "checkpoint.pt", stop_after) is None
    outcome = kept(run, tmp_path / "checkpoint.pt")
    assert outcome is not None and outcome.predictions is not None
    assert 0 < outcome.metrics["round"] < 6, "neither the first nor the last, or nothing is tested"
    labels, scores = outcome.predictions["test"]
    assert auc(scores[:, 0], labels) == outcome.metrics["test_auc"] != outcome.curve[-1]["test_auc"]


def test_a_checkpoint_from_before_the_flag_is_continued(tmp_path: Path) -> None:
    """Its selected row is from before: the run ends with its numbers and no model."""
    run = selected()
    assert kept(run, tmp_path / "checkpoint.pt", stop_after=6, keep=False) is None
    outcome, uncut = kept(run, tmp_path / "checkpoint.pt"), kept(run)
    assert outcome is not None and uncut is not None
    assert outcome.model is None and outcome.predictions is None
    assert outcome.metrics == uncut.metrics and not (tmp_path / "checkpoint.pt.unusable").exists()


def test_numbers_of_numpy_in_a_curve_are_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = classification.Task.measure
    monkeypatch.setattr(
        classification.Task, "measure",
        lambda *given: {name: np.float64(value) for name, value in measure(*given).items()},
    )  # fmt: skip
    path, rounds = tmp_path / "checkpoint.pt", list[int]()

    def die(progress: Progress) -> None:
        rounds.append(progress.round)
        if len(rounds) == 3:
            raise KilledError

    with pytest.raises(KilledError):
        Simulation(spec(), images(), CPU, saved(path, die)).run()
    Simulation(spec(), images(), CPU, saved(path, die)).run()
    assert rounds[:3] == [1, 2, 3] and rounds[3] > 1, "it goes on"
    assert not path.with_name(path.name + ".unusable").exists()
