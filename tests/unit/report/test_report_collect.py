"""Results on disk as frames: nothing missing is hidden, nothing stale is shown."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any, get_origin

import pandas as pd
import pytest
from report_project import Project, run_result

from fedbench.results.aggregate import measure_cells, measurements
from fedbench.results.compare import comparisons
from fedbench.results.frame import Compared, Measured, Row, columns_of, frame_of
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


@pytest.fixture
def cell(project: Project, reduced: Config) -> Cell:
    return project.cells("localscgdam", "table1", reduced)[0]


def row(cell: Cell, metric: str = "test_auc") -> Any:
    return measure_cells([cell], [metric])[0]


def test_mean_and_sample_standard_deviation_over_seeds(project: Project, cell: Cell) -> None:
    project.finish(cell, [0.8, 0.9, 1.0], device_mean_test_auc=0.7, device_var_test_auc=0.001)
    result = row(cell)
    assert (result.status, result.n_seeds, result.commit) == ("finished", 3, "0123456789ab")
    assert (result.mean, result.std) == pytest.approx(
        (0.9, 0.1)
    )  # ddof 1; the population value would be 0.0816
    assert (result.device_mean, result.device_variance) == pytest.approx((0.7, 0.001))
    assert result.values == {0: 0.8, 1: 0.9, 2: 1.0}


def holds(frame: pd.DataFrame, kind: type) -> None:
    """Hold a frame against the class of its rows: the same columns, each of its type."""
    columns = columns_of(kind)
    assert len(frame) and {*frame} == {*columns}
    for name, of in columns.items():
        wanted = get_origin(of) or of
        assert all(isinstance(value, wanted) for value in frame[name].tolist()), name


def test_frames_have_the_columns_that_are_written_down_and_their_types(
    project: Project, reduced: Config, cell: Cell
) -> None:
    project.finish(cell, [0.8, 0.9, 1.0], device_mean_test_auc=0.7, samples=64.0)
    plan = Plan(reduced)
    runs = runs_of_cells([cell], ["test_auc", "test_auc_within_rounds_10"], Shipped(plan))
    holds(frame_of(runs, Row), Row)
    holds(frame_of(measurements(runs, ["test_auc"]), Measured), Measured)
    frame = comparisons(plan, plan.table("table1"), plan.cells("table1"))
    of_layout = dict.fromkeys(("on_edge", "best", "printed_best", "second"), False)
    holds(frame.assign(**of_layout), Compared)


def test_a_metric_that_no_run_has_is_named_with_those_they_have(project: Project, cell: Cell) -> None:
    project.finish(cell, [0.8, math.inf, 1.0], device_mean_test_auc=0.7)
    assert row(cell).status == "undefined" and "seed 1" in row(cell).reason
    result = row(cell, "test_ap")
    assert (result.status, result.reason) == ("undefined", "the runs have no test_ap, only test_auc")


def test_a_diverged_seed_takes_the_mean_away(project: Project, cell: Cell) -> None:
    runs = [run_result(spec.seed, spec.key, {"test_auc": 0.9}) for spec in cell.runs]
    runs[1] |= {"status": "diverged", "metrics": {}, "reason": "loss is nan at iteration 8"}
    project.write(cell, runs)
    result = row(cell)
    assert (result.status, result.n_seeds, result.n_bad) == ("diverged", 2, 1)
    assert result.reason == "1 of 3 seeds: loss is nan at iteration 8"
    assert result.values == {0: 0.9, 2: 0.9}
    assert math.isnan(result.mean)


def test_what_the_store_has_of_other_keys_or_without_a_job_that_left_it_is_no_result(
    project: Project, cell: Cell
) -> None:
    """A run belongs to a cell once a job has put it there; then those of earlier jobs belong to it, too."""
    path = project.finish(cell, [0.8, 0.9, 1.0])
    fewer = row(cell.model_copy(update={"runs": cell.runs[:2]}))
    assert (fewer.status, fewer.n_seeds, fewer.mean) == ("finished", 2, pytest.approx(0.85))
    path.unlink()
    assert row(cell).status == "not run"
    project.write(cell, [run_result(spec.seed, "0" * 16, {"test_auc": 0.9}) for spec in cell.runs])
    assert row(cell).status == "not run" and "other hyper-parameters" in row(cell).reason


def test_a_damaged_run_is_named_and_the_others_count(project: Project, cell: Cell) -> None:
    project.finish(cell, [0.8, 0.9, 1.0]).write_text("of no matter: the store has the numbers")
    path = project.root / "results" / "runs" / cell.runs[0].key / "run.json"
    path.write_text(path.read_text().replace("0.8", "0.9"))
    result = row(cell)
    assert (result.status, result.values) == ("incomplete", {1: 0.9, 2: 1.0})
    assert f"{cell.runs[0].key} is damaged" in result.reason


def test_a_target_of_a_loss_is_reached_from_above(project: Project, cell: Cell) -> None:
    for run, losses in zip(cell.runs, ([0.9, 0.3, 0.2], [0.9, 0.5, 0.1], [0.9, 0.4, 0.5]), strict=True):
        project.write_curve(run.key, {"round": [0, 5, 10], "test_loss": losses})
    project.finish(cell, [0.9] * 3)
    result = row(cell, "rounds_to_test_loss_0.3")
    assert result.values == {0: 5, 1: 10, 2: math.inf} and result.reason == "1 of 3 seeds: best 0.4"


def test_within_a_budget_the_last_evaluation_counts_not_the_best(project: Project, cell: Cell) -> None:
    for run in cell.runs:
        project.write_curve(run.key, {"round": [0, 5, 10, 15], "test_auc": [0.5, 0.9, 0.8, 0.95]})
    project.finish(cell, [0.95] * 3)
    assert row(cell, "test_auc_within_rounds_10").mean == pytest.approx(0.8)


def test_what_a_run_said_of_itself_when_it_ended_counts_and_no_curve_is_read(
    project: Project, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"test_auc": {"pace": 0.01, "sign": "flat", "other": 0.5}}  # as runs of before say, too
    made = [run_result(run.seed, run.key, {"test_auc": 0.8}) | {"facts": facts} for run in cell.runs]
    project.write(cell, made)
    monkeypatch.setattr(pd, "read_csv", None)
    result = row(cell)
    assert (result.pace, result.idle) == (pytest.approx(0.01), {"flat": [0, 1, 2]})


def test_the_report_imports_neither_torch_nor_scipys_statistics() -> None:
    """Each takes a second or more, which a table without tests of significance has no use for."""
    modules = "report.tables, report.figures.build, results.export, report.pdf, report.page.build"
    imports = "\n".join(f"import fedbench.{module}" for module in modules.split(", "))
    code = f"import sys\n{imports}\nprint(set(sys.modules) & set(('torch', 'scipy.stats')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
