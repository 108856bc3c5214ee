"""The table of metrics: directions, labels, what a paper adds."""

from __future__ import annotations

from typing import Any

import pytest
from toy import rewrite

from fedbench import metric_table
from fedbench.errors import UserError
from fedbench.metric_table import budget, measure, rounds_to, target, within
from fedbench.study.configuration import load_paper


@pytest.mark.parametrize(
    ("name", "better", "label", "matters"),
    [
        ("test_auc", "higher", "test AUC", 0.005),
        ("val_minority_accuracy", "higher", "validation minority accuracy", 0.01),
        ("test_auc_h", "higher", "test AUC at the running mean", 0.005),
        ("device_mean_test_auc", "higher", "mean over clients of test AUC", 0.005),
        ("device_var_test_auc", "lower", "variance over clients of test AUC", 0.0),
        ("train_loss", "lower", "training loss", 0.0),
        ("seconds", "lower", "training time", 0.0),
        ("rounds_to", "lower", "rounds to the target", 0.0),
        ("test_auc@Basel", "higher", "test AUC, Basel", 0.005),
        ("worst_site_test_auc", "higher", "worst site's test AUC", 0.005),
    ],
)
def test_the_table_says_which_way_is_better(name: str, better: str, label: str, matters: float) -> None:
    described = measure(name)
    told = (described.name, described.better, described.label, described.matters)
    assert told == (name, better, label, matters)
    assert described.sign == (1 if better == "higher" else -1)


def test_an_unknown_name_is_refused_but_has_a_label() -> None:
    with pytest.raises(UserError, match=r"unknown metric 'test_accuracies'\. Did you mean 'test_accuracy'"):
        measure("test_accuracies")
    with pytest.raises(UserError, match=r"unknown metric 'auc'\. Did you mean 'test_auc'"):
        measure("auc")
    assert metric_table.find("auc") is None, "a metric of a part needs the part"
    assert metric_table.find("nothing@Basel") is None and metric_table.sign("site_std_test_auc") == -1
    assert metric_table.label("some_thing") == "some thing"


def test_what_a_task_measures_of_its_own_is_asked_of_each_part() -> None:
    """`measure` of a task returns `brier`; runs record it as `test_brier` and `val_brier`."""
    additions = {"brier": metric_table.Measure(name="brier", label="Brier score", better="lower")}
    described = measure("test_brier", additions)
    assert (described.name, described.label, described.sign) == ("test_brier", "Brier score", -1)
    assert measure("val_brier", additions).label == "validation Brier score"
    with pytest.raises(UserError, match="Did you mean 'test_brier'"):
        measure("test_brierr", additions)


@pytest.mark.usefixtures("project")
def test_a_paper_adds_metrics_of_its_own() -> None:
    coverage = {"label": "coverage", "better": "lower", "high": 1, "matters": 0.02}
    asked: dict[str, Any] = {"tables": lambda tables: tables["table1"].update(metrics=["coverage"])}
    for measures, says in (
        ({}, r"tables\.table1\.metrics: unknown metric 'coverage'"),
        ({"coverage": coverage | {"beter": "higher"}}, r"measures\.coverage\.beter: unknown key.*'better'"),
    ):
        rewrite(**asked, measures=measures)
        with pytest.raises(UserError, match=says):
            load_paper("toy")
    rewrite(**asked, measures={"coverage": coverage})
    measured = load_paper("toy").measure("coverage")
    assert (measured.name, measured.sign, measured.matters) == ("coverage", -1, 0.02)


@pytest.mark.parametrize("number", [1_272_325, 128_000, 3.8e6, 0.95, 0.123456789])
def test_a_budget_and_a_target_are_read_again_to_the_last_digit(number: float) -> None:
    spent, reached = budget(within("test_auc", "samples", number)), target(rounds_to("test_loss", number))
    assert spent is not None and reached is not None
    assert (spent.amount, reached.value) == (number, number)
