"""What a run leaves beside its numbers: the weights and scores of the row that is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import CPU, images, simulate, spec

from fedbench.engine.execution import Execution
from fedbench.engine.outcome import Outcome, Progress
from fedbench.engine.simulate import Simulation
from fedbench.objectives.metrics import auc
from fedbench.spec import RunSpec
from fedbench.store.runs import csv_text

RESNET = {"network": "resnet20", "options": {"blocks": 1}}


def kept(run: RunSpec, path: Path | None = None, stop_after: int = 0, keep: bool = True) -> Outcome | None:
    """A run that keeps its model; None where it was stopped, with a checkpoint after each round."""

    class StoppedError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.round == stop_after:
            raise StoppedError

    how = Execution(checkpoint=path, checkpoint_seconds=0, on_round=stop, keep=keep)
    try:
        return Simulation(run, images(validation=20, side=8), CPU, how).run()
    except StoppedError:
        return None


@pytest.mark.parametrize("method", ["fedavg", "coda", "local_scgdam"])
def test_the_scores_give_the_reported_metrics_to_the_digit(method: str) -> None:
    run = spec(method, **RESNET)
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
