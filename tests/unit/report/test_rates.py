"""Rates: exponents that were planted are found, and what is missing or broken is named, never fitted."""

from __future__ import annotations

import contextlib
import hashlib
import math
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedbench import sealed_json
from fedbench.report import tables
from fedbench.results import rates
from fedbench.results.aggregate import measurements
from fedbench.results.claims.evidence import Evidence
from fedbench.results.export import export_reproduced
from fedbench.results.places import places_of
from fedbench.results.run_facts import run_facts
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


def put(
    root: Path,
    cell: Cell,
    epsilon: float,
    status: str = "finished",
    seeds: tuple[int, ...] = (0, 1),
    flat: int = -1,
) -> None:
    """Write results of a cell whose gradient norm is ``epsilon`` on average after the first evaluation.

    That of the seed ``flat`` never moves.
    """
    budget = float(cell.setting["T"])
    for run in cell.runs:
        if run.seed not in seeds:
            continue
        metrics = {"test_gradient_norm": epsilon}
        folder = root / "results" / "runs" / run.key
        folder.mkdir(parents=True, exist_ok=True)
        curve = {
            "round": [0, budget**0.75 / 2, budget**0.75],
            "samples": [0, budget, budget**1.5],
            "test_gradient_norm": [epsilon] * 3 if run.seed == flat else [9.0, 1.5 * epsilon, 0.5 * epsilon],
        }
        known = run_facts(metrics, pd.DataFrame(curve), run.train, {})
        ended = {"key": run.key, "status": status, "metrics": metrics, "facts": known}
        content = pd.DataFrame(curve).to_csv(index=False).encode()
        (folder / "curve.csv").write_bytes(content)
        made = {"spec": run.model_dump(mode="json"), "reason": "too large", "provenance": {}}
        files = {"curve.csv": hashlib.sha256(content).hexdigest()}
        sealed_json.write(folder / "run.json", {**ended, **made, "files": files})
    path = root / cell.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def measured(root: Path, budgets: tuple[int, ...] = (16, 256, 4096)) -> dict[str, Any]:
    with contextlib.chdir(root):
        runs = rates.rates_of_cells([cell_of(t) for t in budgets], SPEC)
        return {one.metric: one for one in measurements(runs, SPEC.metrics)}


def test_planted_exponents_are_found(tmp_path: Path) -> None:
    """epsilon = T^-1/4, samples = T^1.5, rounds = T^3/4: 6 and 3."""
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), budget**-0.25)
    metrics = measured(tmp_path)
    assert metrics["sample_exponent"].mean == pytest.approx(6, abs=1e-9)
    assert metrics["communication_exponent"].mean == pytest.approx(3, abs=1e-9)
    assert metrics["sample_exponent"].std == pytest.approx(0, abs=1e-9)
    assert metrics["sample_exponent"].status == "finished" and metrics["sample_exponent"].place[1:] == (
        ("sigma", 1.0),
    )


def test_a_budget_that_learned_nothing_marks_the_exponents_of_its_seed(tmp_path: Path) -> None:
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), budget**-0.25, flat=1 if budget == 256 else -1)
    for first in measured(tmp_path).values():
        assert first.status == "finished" and first.signs == {1: "flat"}


def test_two_budgets_give_no_slope(tmp_path: Path) -> None:
    for budget in (16, 256):
        put(tmp_path, cell_of(budget), budget**-0.25)
    first = measured(tmp_path, (16, 256))["sample_exponent"]
    assert first.status == "undefined" and "2 budgets are too few" in first.reason and math.isnan(first.mean)
    assert math.isnan(rates.exponent([0.1] * 2, [1.0] * 2))


def test_an_epsilon_that_stands_still_gives_no_slope(tmp_path: Path) -> None:
    """Few rounds that lead nowhere would else have the best exponent, 0."""
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), 0.1)
    first = measured(tmp_path, (16, 256, 4096))["communication_exponent"]
    assert first.status == "undefined" and "epsilon does not fall with the budget: 0.1 with" in first.reason
    with pytest.raises(ValueError, match="does not fall"):
        rates.exponent([0.115, 0.11, 0.1], [1.0, 2.0, 3.0])
    assert str(rates.exponent([0.4, 0.2, 0.1], [8.0, 8.0, 8.0 - 1e-12])) == "0.0", "0 has no sign"


def test_epsilon_is_the_mean_of_the_run_or_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    """The curve of ``put`` is 9, 1.5 and 0.5 times epsilon; its second half begins at the second point."""
    cell = cell_of(16)
    put(tmp_path, cell, 0.2)
    for word, expected in (("mean", 0.2), ("end", 0.2)):
        point = rates._point(cell, 0, "round", word)
        assert point is not None and point[0] == pytest.approx(expected)
    path = tmp_path / "results" / "runs" / cell.runs[0].key / "curve.csv"
    curve = pd.DataFrame({"round": range(6), "test_gradient_norm": [9, 5, 4, 0.3, 0.2, 0.1]})
    content = curve.to_csv(index=False).encode()
    path.write_bytes(content)
    record = sealed_json.read(path.with_name("run.json"))
    sealed_json.write(
        path.with_name("run.json"), {**record, "files": {"curve.csv": hashlib.sha256(content).hexdigest()}}
    )
    result = {word: rates._point(cell, 0, "round", word) for word in rates.EPSILONS}
    assert result == {
        "mean": (pytest.approx(1.92), 5.0),
        "end": (pytest.approx(0.2), 5.0),
    }


def test_a_diverged_budget_is_named_and_never_fitted(tmp_path: Path) -> None:
    for budget in (16, 256, 4096, 65536):
        put(tmp_path, cell_of(budget), budget**-0.25, "diverged" if budget == 256 else "finished")
    first = measured(tmp_path, (16, 256, 4096, 65536))["sample_exponent"]
    assert first.status == "diverged" and "T256" in first.reason and not first.values


def test_a_seed_that_diverged_leaves_no_exponent_of_the_others(tmp_path: Path) -> None:
    """Claims read seeds: the others would count as if none had."""
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), budget**-0.25)
    path = tmp_path / "results" / "runs" / cell_of(256).runs[1].key / "run.json"
    sealed_json.write(path, sealed_json.read(path) | {"status": "diverged"})
    first = measured(tmp_path)["sample_exponent"]
    assert (first.status, first.values, first.n_bad) == ("diverged", {}, 1)


def test_an_impossible_epsilon_is_named(tmp_path: Path) -> None:
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), 0.0 if budget == 16 else 0.1)
    first = measured(tmp_path)["sample_exponent"]
    assert first.status == "undefined" and "epsilon is 0" in first.reason
    with pytest.raises(ValueError, match="epsilon is inf"):
        rates.exponent([math.inf] * 3, [1.0] * 3)


def test_claims_read_exponents_and_the_export_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acc-FCSG-M's epsilon falls faster: exponents 4 and 2 instead of 6 and 3, one place for all budgets."""
    for part in ("config", "published"):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    config = load_config(overrides={"scale": "reduced", "paper": "fcsg", "seeds": [0, 1, 2]})
    for cell in Plan(config, "fcsg").cells("table1"):
        power = -0.375 if cell.method == "Acc-FCSG-M" else -0.25
        put(tmp_path, cell, float(cell.setting["T"]) ** power, seeds=(0, 1, 2))
    exponents = ["sample_exponent", "communication_exponent"]

    def read(config: Config, method: str, metric: str) -> dict[int, float]:
        numbers = Evidence(Plan(config), ["table1"], exponents).of(metric)
        rows = numbers[numbers["method"] == method]
        assert set(rows["place"]) <= set(places_of(Plan(config).study, ["table1"])), (
            "one place for all budgets"
        )
        return dict(zip(rows["seed"], rows["value"], strict=True))

    for method, samples, rounds in (("FCSG", 6, 3), ("Acc-FCSG-M", 4, 2)):
        for metric, value in (("sample_exponent", samples), ("communication_exponent", rounds)):
            assert read(config, method, metric) == pytest.approx(dict.fromkeys(range(3), value))
    path = export_reproduced(Plan(config, "fcsg"), "table1")
    before = path.read_bytes()
    diverged = next(cell for cell in Plan(config, "fcsg").cells("table1") if cell.method == "FCSG")
    put(tmp_path, diverged, 0.1, "diverged", seeds=(0, 1, 2))
    assert export_reproduced(Plan(config, "fcsg"), "table1").read_bytes() == before, "no exponent is no row"
    rows = pd.read_csv(path).set_index(["method", "metric"])
    assert set(rows.loc[("Acc-FCSG-M", "sample_exponent"), "value"]) == {4} and rows["T"].isna().all()
    assert rows["key"].str.split().map(len).eq(3).all() and set(rows["seed"]) == {0, 1, 2}

    shutil.rmtree(tmp_path / "results")
    made = tables.table_of(Plan(config, "fcsg"), "table1")
    shown = made.rows.set_index(["method", "metric"]).loc[("Acc-FCSG-M", "sample_exponent")]
    assert (shown["mean"], shown["shipped"], shown["n_seeds"]) == (4, True, 3)
    line = 2 + [*rows.index].index(("Acc-FCSG-M", "sample_exponent"))  # line 1 is the header
    assert shown["source"] == f"reproduced/reduced/fcsg.csv:{line}-{line + 2}"
    assert read(config, "FCSG", "communication_exponent") == pytest.approx(dict.fromkeys(range(3), 3))
    other = config.model_copy(update={"set": {"train.batch_size": 2}})
    assert not read(other, "FCSG", "sample_exponent"), "other runs"


def test_a_seed_without_all_budgets_does_not_count(tmp_path: Path) -> None:
    for budget in (16, 256, 4096):
        put(tmp_path, cell_of(budget), budget**-0.25, seeds=(0,) if budget == 256 else (0, 1))
    first = measured(tmp_path)["sample_exponent"]
    assert first.status == "incomplete" and list(first.values) == [0] and "1 of 2 seeds" in first.reason
    (tmp_path / "nowhere").mkdir()
    assert measured(tmp_path / "nowhere")["sample_exponent"].status == "not run"
