"""The control row of a leaderboard: an untrained model with random scores; and how rankings are measured there."""

from __future__ import annotations

import pytest
from world import images, simulate, spec

from fedbench.spec import RunSpec, TaskSpec


def with_task(run: RunSpec, name: str, **options: object) -> RunSpec:
    return run.model_copy(update={"task": TaskSpec(name=name, options=dict(options))})


def untrained(seed: int = 0) -> RunSpec:
    run = spec("fedavg", rounds=2, evaluations=2, seed=seed)
    return with_task(run.model_copy(update={"method": "untrained", "params": {}}), "random_scores")


def test_random_scores_are_those_of_guessing_and_nothing_moves() -> None:
    arrays = images(test=4000)
    simulation, outcome = simulate(untrained(), arrays)
    assert outcome.metrics["test_auc"] == pytest.approx(0.5, abs=0.03)
    assert outcome.metrics["test_ap"] == pytest.approx(arrays.y_test.mean(), abs=0.03)
    assert outcome.metrics["test_sensitivity_at_95_specificity"] == pytest.approx(0.05, abs=0.03)
    assert simulation.record.curve[0]["test_auc"] == simulation.record.curve[-1]["test_auc"]
    _, other = simulate(untrained(seed=1), arrays)
    assert other.metrics["test_auc"] != outcome.metrics["test_auc"]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_random_scores_say_what_they_measure(n_classes: int) -> None:
    """Planning refuses a table whose metrics nobody has."""
    simulation, outcome = simulate(untrained(), images(n_classes=n_classes))
    names = {name.removeprefix("test_") for name in outcome.metrics if name.startswith("test_")}
    assert names == set(simulation.problem.task.measured(n_classes, simulation.spec.train))


def test_random_classes_are_hit_as_often_as_there_are_classes() -> None:
    _, outcome = simulate(untrained(), images(test=4000, n_classes=4))
    assert outcome.metrics["test_overall_accuracy"] == pytest.approx(0.25, abs=0.03)


def test_the_detailed_average_precision_adds_a_metric_and_changes_nothing() -> None:
    run = spec("fedavg", seed=3).model_copy(update={"method": "fcsg", "params": {"lr": 0.2}})
    options = {"positives": 2, "margin": 0.3}
    _, plain = simulate(with_task(run, "average_precision", **options), images())
    _, detailed = simulate(with_task(run, "average_precision_detailed", **options), images())
    shared = {name: detailed.metrics[name] for name in ("test_auc", "test_ap")}
    assert shared == {name: plain.metrics[name] for name in shared}
    assert 0 <= detailed.metrics["test_sensitivity_at_95_specificity"] <= 1
