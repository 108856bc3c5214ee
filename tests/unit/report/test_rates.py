"""Rates: exponents that were planted are found, and what is missing or broken is named, never fitted."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_project import Project, table_of

from fedbench.results import rates
from fedbench.results.aggregate import measurements
from fedbench.results.claims.claim_query import Evidence
from fedbench.results.export import export_reproduced
from fedbench.results.places import places_of
from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, TableSpec

ROOT = Path(__file__).parents[3]
SPEC = TableSpec(
    title="", kind="rates", datasets=["D"], methods=["M"], pool=["T"], metrics=[*rates.SPENT], rows=["method"]
)


def cell_of(budget: int) -> Cell:
    runs = [
        RunSpec(
            data=DataSpec(dataset="d", clients=2), network=NetworkSpec(name="mlp"), method="fcsg", params={"lr": 0.1},
            train=TrainSpec(iterations=budget, period=1, batch_size=1), seed=seed,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    return Cell(paper="p", scale="s", dataset="D", setting={"T": budget, "sigma": 1.0}, method="M", runs=runs)


def put(project: Project, cell: Cell, epsilon: float, flat: int = -1) -> None:
    """Write results of a cell whose gradient norm is ``epsilon`` on average after the first evaluation.

    That of the seed ``flat`` never moves.
    """
    budget = float(cell.setting["T"])
    for run in cell.runs:
        norms = [epsilon] * 3 if run.seed == flat else [9.0, 1.5 * epsilon, 0.5 * epsilon]
        rounds, samples = [0, budget**0.75 / 2, budget**0.75], [0, budget, budget**1.5]
        project.write_curve(run.key, {"round": rounds, "samples": samples, "test_gradient_norm": norms})
    project.finish(cell, [epsilon] * len(cell.runs), "test_gradient_norm")


def diverge(project: Project, cell: Cell, seeds: tuple[int, ...]) -> None:
    diverged = {"status": "diverged", "reason": "too large"}
    project.write(cell, [run | diverged if run["seed"] in seeds else run for run in project.runs(cell)])


def measured(budgets: tuple[int, ...] = (16, 256, 4096)) -> dict[str, Any]:
    runs = rates.rates_of_cells([cell_of(t) for t in budgets], SPEC)
    return {one.metric: one for one in measurements(runs, SPEC.metrics)}


@pytest.mark.parametrize("flat", [-1, 1])
def test_planted_exponents_are_found(project: Project, flat: int) -> None:
    """epsilon = T^-1/4, samples = T^1.5, rounds = T^3/4: 6 and 3; a budget that learned nothing marks its seed."""
    assert measured()["sample_exponent"].status == "not run"
    for budget in (16, 256, 4096):
        put(project, cell_of(budget), budget**-0.25, flat if budget == 256 else -1)
    for metric, exponent in (("sample_exponent", 6), ("communication_exponent", 3)):
        number = measured()[metric]
        assert (number.status, number.place[1:]) == ("finished", (("sigma", 1.0),))
        assert number.signs == ({1: "flat"} if flat == 1 else {})
        assert flat == 1 or (number.mean, number.std) == pytest.approx((exponent, 0), abs=1e-9)


@pytest.mark.parametrize(
    ("budgets", "power", "diverged", "status", "reason", "values"),
    [
        ((16, 256), -0.25, (), "undefined", "2 budgets are too few", 0),
        # few rounds that lead nowhere would else have the best exponent, 0
        ((16, 256, 4096), 0.0, (), "undefined", "epsilon does not fall with the budget: 1 with", 0),
        ((16, 256, 4096), -math.inf, (), "undefined", "epsilon is 0", 0),
        ((16, 256, 4096), -0.25, (0, 1), "diverged", "T256", 0),
        # claims read seeds: the other would count as if none had
        ((16, 256, 4096), -0.25, (1,), "diverged", "1 of 2 seeds", 0),
        ((16, 256, 4096), -0.25, None, "incomplete", "1 of 2 seeds", 1),
    ],
)
def test_what_gives_no_exponent_is_named_and_never_fitted(
    project: Project, budgets: tuple[int, ...], power: float, diverged: tuple[int, ...] | None, status: str,
    reason: str, values: int,
) -> None:  # fmt: skip
    for budget in budgets:
        put(project, cell_of(budget), budget**power)
    if diverged is None:
        project.forget(cell_of(256).runs[1:])
    else:
        diverge(project, cell_of(256), diverged)
    number = measured(budgets)["communication_exponent"]
    known = [value for value in number.values.values() if math.isfinite(value)]
    assert (number.status, len(known)) == (status, values) and reason in number.reason


def test_slopes_by_hand() -> None:
    assert math.isnan(rates.exponent([0.1] * 2, [1.0] * 2))
    for epsilons, message in (([0.115, 0.11, 0.1], "does not fall"), ([math.inf] * 3, "epsilon is inf")):
        with pytest.raises(ValueError, match=message):
            rates.exponent(epsilons, [1.0, 2.0, 3.0])
    assert str(rates.exponent([0.4, 0.2, 0.1], [8.0, 8.0, 8.0 - 1e-12])) == "0.0", "0 has no sign"


def test_epsilon_is_the_mean_of_the_run_or_of_its_end() -> None:
    """The second half begins at the fourth of six points."""
    curve = pd.DataFrame({"test_gradient_norm": [9, 5, 4, 0.3, 0.2, 0.1]})
    for word, epsilon in (("mean", 1.92), ("end", 0.2)):
        assert rates.epsilon_of(curve, word) == pytest.approx(epsilon)


def test_claims_read_exponents_and_the_export_keeps_them(project: Project) -> None:
    """Acc-FCSG-M's epsilon falls faster: exponents 4 and 2 instead of 6 and 3, one place for all budgets."""
    shutil.copytree(ROOT / "config", "config", dirs_exist_ok=True)
    config = load_config(overrides={"scale": "reduced", "paper": "fcsg", "seeds": [0, 1, 2]})
    cells = Plan(config, "fcsg").cells("table1")
    for cell in cells:
        put(project, cell, float(cell.setting["T"]) ** (-0.375 if cell.method == "Acc-FCSG-M" else -0.25))

    def read(config: Config, method: str, metric: str) -> dict[int, float]:
        exponents = ["sample_exponent", "communication_exponent"]
        numbers = Evidence(Plan(config), ["table1"], exponents).numbers[metric]
        rows = numbers[numbers["method"] == method]
        assert set(rows["place"]) <= set(places_of(Plan(config).study, ["table1"])), "one for all budgets"
        return dict(zip(rows["seed"], rows["value"], strict=True))

    for method, samples, rounds in (("FCSG", 6, 3), ("Acc-FCSG-M", 4, 2)):
        for metric, value in (("sample_exponent", samples), ("communication_exponent", rounds)):
            assert read(config, method, metric) == pytest.approx(dict.fromkeys(range(3), value))
    path = export_reproduced(Plan(config, "fcsg"), "table1")
    before = path.read_bytes()
    diverge(project, next(cell for cell in cells if cell.method == "FCSG"), (0, 1, 2))
    assert export_reproduced(Plan(config, "fcsg"), "table1").read_bytes() == before, "no exponent is no row"
    rows = pd.read_csv(path).set_index(["method", "metric"])
    assert set(rows.loc[("Acc-FCSG-M", "sample_exponent"), "value"]) == {4} and rows["T"].isna().all()
    assert rows["key"].str.split().map(len).eq(3).all() and set(rows["seed"]) == {0, 1, 2}

    shutil.rmtree("results")
    made = table_of(config, "fcsg").rows.set_index(["method", "metric"])
    shown = made.loc[("Acc-FCSG-M", "sample_exponent")]
    assert (shown["mean"], shown["shipped"], shown["n_seeds"]) == (4, True, 3)
    line = 2 + [*rows.index].index(("Acc-FCSG-M", "sample_exponent"))  # line 1 is the header
    assert shown["source"] == f"reproduced/reduced/fcsg.csv:{line}-{line + 2}"
    assert read(config, "FCSG", "communication_exponent") == pytest.approx(dict.fromkeys(range(3), 3))
    other = config.model_copy(update={"set": {"train.batch_size": 2}})
    assert not read(other, "FCSG", "sample_exponent"), "other runs"
