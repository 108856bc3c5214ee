"""Runs that ended and learned nothing are named in their cell, in tables and on the page; others are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from report_project import Project, cell_of, line, table_of

from fedbench import sealed_json
from fedbench.data.partition import partition_path
from fedbench.results import degenerate_runs, runs
from fedbench.results.aggregate import summarised
from fedbench.results.combine import averages, pool
from fedbench.results.export import export_reproduced
from fedbench.results.frame import Measured
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

COUNTS = [980, 1135, 885]
NO_CURVE = pd.DataFrame()


def curve(*aucs: float, ap: float = 0.3) -> pd.DataFrame:
    moving = [ap + 0.1 * n for n in range(len(aucs))] if ap != 0.3 else [ap] * len(aucs)
    return pd.DataFrame({"round": range(len(aucs)), "test_auc": aucs, "test_ap": moving})


@pytest.mark.parametrize(
    "metrics, collected",
    [
        ({"test_overall_accuracy": 1135 / 3000}, degenerate_runs.ONE_CLASS),
        ({"test_overall_accuracy": 1136 / 3000}, ""),
        ({"test_overall_accuracy": 980 / 3000, "test_minority_accuracy": 0.0}, degenerate_runs.ONE_CLASS),
        ({"test_accuracy": 980 / 3000, "test_balanced_accuracy": 1 / 3}, degenerate_runs.ONE_CLASS),
        ({"test_accuracy": 980 / 3000, "test_balanced_accuracy": 0.4}, ""),
        ({"test_balanced_accuracy": 1 / 3, "test_f1": 0.1}, degenerate_runs.ONE_CLASS),
        ({"test_f1": 0.0}, ""),
    ],
)
def test_one_class_predicted_is_told_by_its_exact_accuracy(metrics: dict[str, float], collected: str) -> None:
    for name in metrics:
        assert degenerate_runs.sign(name, metrics, NO_CURVE, {"test": COUNTS}) == collected, name
    assert not degenerate_runs.sign(next(iter(metrics)), metrics, NO_CURVE, {}), (
        "without the classes nobody can tell"
    )
    assert not degenerate_runs.sign("test_accuracy", {"test_accuracy": 1.0}, NO_CURVE, {"test": [0, 9]}), (
        "there is but one"
    )


def test_the_ranking_of_a_run_that_predicts_one_class_may_be_good() -> None:
    for name in ("test_auc", "test_ap", "test_loss", "test_sensitivity_at_0.9", "test_gradient_norm"):
        metrics = {"test_accuracy": 980 / 3000, name: 0.93}
        assert degenerate_runs.sign(name, metrics, NO_CURVE, {"test": COUNTS}) == ""
    # of a site, with two negatives among its patients, an AUC of one half is one of a few values
    assert degenerate_runs.constant("test_auc", 0.5) and not degenerate_runs.constant("test_auc@Zurich", 0.5)


@pytest.mark.parametrize(
    "of, value, result",
    [
        (curve(0.6, 0.6, 0.6), 0.6, degenerate_runs.FLAT),
        (curve(0.6, 0.7, 0.7), 0.7, ""),
        (curve(0.6, 0.6), 0.6, ""),
        (curve(0.6, 0.6, 0.6, ap=0.2), 0.6, ""),
        (curve(0.5, 0.5, 0.5), 0.5, degenerate_runs.CONSTANT),
        (curve(0.4, 0.5, 0.500001), 0.500001, ""),
    ],
)
def test_a_curve_that_never_moves_is_flat(of: pd.DataFrame, value: float, result: str) -> None:
    assert degenerate_runs.sign("test_auc", {"test_auc": value}, of, {}) == result


@pytest.mark.parametrize(
    "trained, result",
    [
        (0.49, degenerate_runs.REVERSED),
        (0.0, degenerate_runs.REVERSED),
        (0.5, ""),
        (None, ""),
        (float("nan"), ""),
    ],
)
def test_what_ranks_the_training_data_in_reverse_is_told_wherever_ranks_are_measured(
    trained: float | None, result: str
) -> None:
    metrics = {"test_auc": 0.7, "test_auc_h@Basel": 0.2, "val_ap": 0.1, "train_auc": trained}
    assert {degenerate_runs.sign(name, metrics, NO_CURVE, {}) for name in metrics if name != "train_auc"} == {
        result
    }
    assert not degenerate_runs.sign("test_loss", metrics | {"test_loss": 0.3}, NO_CURVE, {})


def test_perfect_from_the_first_round_on_is_not_flat() -> None:
    perfect = pd.DataFrame({"test_auc": [1.0] * 4})
    assert degenerate_runs.sign("test_auc", {"test_auc": 1.0}, perfect, {}) == ""
    assert (
        degenerate_runs.sign("test_auc", {"test_auc": 1.0}, perfect.assign(test_ap=0.9), {})
        == degenerate_runs.FLAT
    )


@pytest.mark.parametrize(
    "aps, collected",
    [([0.2, 0.3, 0.3, 0.3], degenerate_runs.STUCK), ([0.2, 0.2, 0.3, 0.3], ""), ([0.2, 1.0, 1.0, 1.0], "")],
)
def test_a_ranking_that_stands_still_at_the_end_is_stuck_unless_it_is_perfect(
    aps: list[float], collected: str
) -> None:
    of = pd.DataFrame({"test_ap": aps})
    assert degenerate_runs.sign("test_ap", {"test_ap": aps[-1]}, of, {}) == collected


@pytest.fixture
def accuracies(project: Project, reduced: Config) -> Project:
    """CoDA predicts one class in its second seed, LocalSGDAM's third never moves, LocalSGDM learns."""
    project.change(tables={"table1": {"metrics": ["test_overall_accuracy"], "published": None}}, claims=[])
    for method, level in {"CoDA": 0.8, "LocalSGDAM": 0.7, "LocalSGDM": 0.9}.items():
        cell = cell_of(project, reduced, "CIFAR10", method)
        values = [level, 1135 / 3000 if method == "CoDA" else level, level]
        for run, value in zip(cell.runs, values, strict=True):
            path = partition_path(run.data, run.seed, Path("data")).with_suffix(".json")
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = {
                part: {"class_counts": dict(zip("012", counts, strict=True))}
                for part, counts in {"test": COUNTS, "validation": [9, 8, 7]}.items()
            }
            sealed_json.write(path, {"key": path.stem, "train": {"positive_ratio": None}, **parts})
            assert degenerate_runs.class_counts(run, Path("data")) == {"test": COUNTS, "val": [9, 8, 7]}
            still = method == "LocalSGDAM" and run.seed == 2
            rising = [value - 0.1 * (not still), value, value]
            evaluations = {"round": range(3), "iteration": range(3), "test_overall_accuracy": rising}
            project.write_curve(run.key, evaluations)
        project.finish(cell, values, "test_overall_accuracy")
    return project


def test_a_table_names_them_in_their_cells_and_below_also_where_they_were_shipped(
    accuracies: Project, reduced: Config
) -> None:
    """Without runs, curves and partitions a mean is not shown as if all its runs had learned."""
    text = table_of(reduced).markdown()
    assert "0.659±0.243 (1/3 one class)" in text and "0.700±0.000 (1/3 flat)" in text
    assert "(1/3" not in line(text, "LocalSGDM")
    learned = {degenerate_runs.ONE_CLASS: "CoDA: seed 1", degenerate_runs.FLAT: "LocalSGDAM: seed 2"}
    for word, place in learned.items():
        meaning = degenerate_runs.MEANING[word]
        assert f"{meaning[0].upper()}{meaning[1:]}: CIFAR10, p = 4, {place}." in text
    export_reproduced(Plan(reduced), "table1")
    shutil.rmtree(accuracies.root / "results")
    shutil.rmtree(accuracies.root / "data")
    text = table_of(reduced).markdown()
    assert "0.659‡±0.243 (1/3 one class)" in text and "0.700‡±0.000 (1/3 flat)" in text
    assert "CIFAR10, p = 4, CoDA: seed 1." in text


def test_neither_a_pool_nor_an_average_hides_them() -> None:
    places = [(("dataset", "D"), ("cut", n)) for n in range(2)]
    numbers = [
        summarised(Measured("demo", place, "CoDA", "test_auc", "finished", values={0: value, 1: 0.9}))
        for place, value in zip(places, (0.5, 0.9), strict=True)
    ]
    for made in (averages(numbers, "cut", (0, 1)), pool(numbers, ["cut"])):
        assert [number.idle for number in made] == [{degenerate_runs.CONSTANT: [0]}]


@pytest.mark.parametrize("word", degenerate_runs.MEANING)
def test_within_a_budget_a_run_is_idle_that_never_learned_anything(word: str) -> None:
    """What its scores were when it ended says nothing of them before."""
    said = runs._facts_within("test_auc_within_rounds_10", {"test_auc": {"sign": word}})
    assert said == ({"sign": word} if word in (degenerate_runs.FLAT, degenerate_runs.ONE_CLASS) else {})
