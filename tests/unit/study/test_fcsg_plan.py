"""The paper fcsg as configured: one paper, three kinds of problem, and the theory's schedules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedbench import tasks
from fedbench.algorithms import make_method
from fedbench.spec import RunSpec
from fedbench.study.configuration import load_config, load_paper
from fedbench.study.plan import Plan

CONFIG = Path(__file__).parents[3] / "config"
KINDS = {"ILR": "invariant", "ILR-norm": "invariant", "Omniglot": "maml", "Sinusoids": "sinusoids"}


def runs(scale: str, target: str | None = None) -> list[tuple[str, str, RunSpec]]:
    config = load_config(overrides={"scale": scale, "paper": "fcsg"})
    return [(cell.dataset, cell.method, cell.runs[0]) for cell in Plan(config, "fcsg").cells(target)]


@pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
def test_every_cell_has_a_task_that_its_method_takes(scale: str) -> None:
    result = runs(scale)
    assert len(result) > 25
    for dataset, method, run in result:
        plain = method in ("FedAvg", "CODASCA")
        name = "more_positives" if plain else KINDS.get(dataset, "average_precision")
        assert run.task is not None and run.task.name == name
        tasks.check_fit(make_method(run.method, run.params), tasks.make_task(run.task), run.method, run.task)


def test_budgets_follow_the_theory() -> None:
    """Slopes over T: alpha -1/2, q 1/4, m 1/2 for FCSG; alpha -1/3, beta -2/3, q 1/3, m 2/3 for Acc-FCSG-M."""
    result = runs("paper", "table1")
    slopes = {"FCSG": (-1 / 2, None, 1 / 4, 1 / 2), "FCSG-M": (-1 / 2, -1 / 2, 1 / 4, 1 / 2),
              "Acc-FCSG-M": (-1 / 3, -2 / 3, 1 / 3, 2 / 3)}  # fmt: skip
    for method, wanted in slopes.items():
        those = [run for _, name, run in result if name == method and (run.train.iterations or 0) >= 1024]
        log_t = np.log([run.train.iterations or 1 for run in those])
        assert len(those) == 4
        values = [
            [run.params["lr"] for run in those],
            [run.params.get("beta", 1.0) for run in those],
            [run.train.period for run in those],
            [run.task.options["copies"] for run in those if run.task],
        ]
        for value, slope in zip(values, wanted, strict=True):
            if slope is not None:
                assert np.polyfit(log_t, np.log(np.array(value, float)), 1)[0] == pytest.approx(
                    slope, abs=0.02
                )


def test_a_setting_of_other_datasets_changes_nothing() -> None:
    paper = load_paper("fcsg")
    assert not paper.settings["sigma"].holds("MNIST") and paper.settings["sigma"].holds("ILR")
    for dataset, _, run in runs("demo"):
        if dataset == "Digits":
            assert (
                run.task is not None and run.task.options.items() <= {"positives": 3, "margin": 0.1}.items()
            )
            assert run.data.imbalance.rho == 5
