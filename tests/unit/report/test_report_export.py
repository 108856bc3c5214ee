"""Measured numbers that are kept in git: what an export leaves of runs of this machine and of others."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from report_project import Project, run_result

from fedbench.errors import UserError
from fedbench.results.export import export_reproduced, in_order
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

FILE = "reproduced/reduced/localscgdam.csv"
HEAD = "dataset,p,imratio,method,seed,key,metric,value,status,reason,pace,sign,commit,hardware"


def exported(config: Config) -> pd.DataFrame:
    """What an export of Table 1 leaves in the file."""
    path = export_reproduced(Plan(config), "table1")
    return pd.read_csv(path, dtype={"key": str, "commit": str}).set_index(["key", "metric"])


def test_an_export_has_a_row_for_each_run_and_metric(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    full, part, *_ = project.cells("localscgdam", "table1", reduced)
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9, "floats_up": 8.0, "loss": 3.0}) for s in part.runs]
    runs[0] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(part, runs)
    rows, path = exported(reduced), project.root / FILE
    assert path.read_text().partition("\n")[0] == HEAD
    broken, good, _ = (run.key for run in part.runs)
    assert (rows.loc[good, "status"] == "finished").all() and (
        rows.loc[good, "commit"] == "0123456789ab"
    ).all()
    assert rows.loc[good, "value"].to_dict() == {"test_auc": 0.9, "floats_up": 8.0, "seconds": 1.5}
    (row,) = rows.loc[[broken]].itertuples()
    assert (row.status, row.reason, row.Index[1]) == ("diverged", "loss is nan", np.nan)
    key, measured = full.runs[0].key, project.runs(full)[0]["metrics"]["test_auc"]
    assert pd.isna(row.value) and rows.loc[(key, "device_var_test_auc"), "value"] == 2e-7
    assert rows.loc[(key, "test_auc"), "value"] == float(f"{measured:.6g}") != float(f"{measured:.5g}")
    assert abs(rows.loc[(key, "test_auc"), "pace"]) > 0
    assert set(rows["p"]) == {4, 8, 16} and rows.index.get_level_values("key").nunique() == 90
    before = path.read_bytes()
    (project.root / full.path).write_text("torn")  # a failed job hides no older number of the same key
    assert export_reproduced(Plan(reduced), "table1").read_bytes() == before


def test_runs_of_other_machines_stay_and_new_ones_are_added(project: Project, reduced: Config) -> None:
    """Here seed 0 of everything, there seeds 1 and 2 of one dataset: the file has both."""
    project.fill("localscgdam", "table1", reduced.model_copy(update={"seeds": [0]}))
    first = exported(reduced)
    shutil.rmtree(project.root / "results")
    with pytest.raises(UserError, match="no run of localscgdam/table1 at scale reduced was trained here"):
        exported(reduced)
    elsewhere = reduced.model_copy(update={"seeds": [1, 2], "datasets": ["CIFAR10"]})
    project.fill("localscgdam", "table1", elsewhere)
    both = exported(elsewhere)
    seeds = both.groupby("dataset")["seed"].agg(lambda seeds: sorted({*seeds})).to_dict()
    assert seeds == {"CIFAR10": [0, 1, 2], "FashionMNIST": [0]}
    pd.testing.assert_frame_equal(both.loc[first.index].sort_index(), first.sort_index())
    places = both.reset_index()[["dataset", "p", "method", "metric", "seed"]]
    ordered = places.sort_values([*places], kind="stable")
    assert list(ordered.index) == list(places.index), "in an order that does not depend on who came first"


def test_a_run_of_another_configuration_is_replaced_once_it_is_measured_anew(
    project: Project, reduced: Config
) -> None:
    """And one that diverged here has none of the numbers that it had."""
    project.fill("localscgdam", "table1", reduced)
    before = exported(reduced)
    project.change(methods={"CoDA": {"params": {"lr": 0.5}}})
    first, *changed = (c for c in project.cells("localscgdam", "table1", reduced) if c.method == "CoDA")
    for cell in changed:
        project.finish(cell, [0.1] * 3)
    project.write(first, [run_result(r.seed, r.key, {}, "diverged", "nan") for r in first.runs[:1]])
    after = exported(reduced)
    coda = after[after["method"] == "CoDA"].reset_index()
    of_first = (coda["dataset"] == first.dataset) & (coda["p"] == first.setting["p"])
    now = {run.key for cell in changed for run in cell.runs}
    assert set(coda.loc[~of_first, "key"]) == now and set(coda.loc[~of_first, "value"]) == {0.1}
    assert set(coda.loc[of_first & (coda["seed"] == 0), "status"]) == {"diverged"}, "its old numbers are gone"
    assert len(coda[of_first & (coda["seed"] > 0)]) > 1, "those not measured anew stay"
    others = [of[of["method"] != "CoDA"] for of in (after, before)]
    pd.testing.assert_frame_equal(*others, check_dtype=False)
    again = changed[0].runs[0]
    project.write(changed[0], [run_result(0, again.key, {}, "diverged", "nan")])
    assert exported(reduced).loc[again.key, "status"].tolist() == ["diverged"], "under the same key, too"


def test_a_run_that_two_cells_share_has_one_number(project: Project, reduced: Config) -> None:
    """Else the file contradicts itself, and is refused when it is read."""
    project.fill("localscgdam", "table1", reduced)
    exported(reduced)
    path = project.root / FILE
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    twin = rows[rows["key"] == rows["key"].iloc[0]].assign(p="99", value="0.123456", commit="elsewhere")
    pd.concat([rows, twin]).to_csv(path, index=False)
    export_reproduced(Plan(reduced), "table1")
    made = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert (made["p"] == "99").sum() == len(twin), "the other place stays"
    of_run = made[made["key"] == twin["key"].iloc[0]].groupby("metric")
    assert (of_run["value"].nunique() == 1).all() and "0.123456" not in {*made["value"]}


def test_rows_are_in_the_order_of_their_numbers() -> None:
    """0.01 and 0.1 are no tie, 16 comes after 4, words after numbers."""
    rows = pd.DataFrame({"dataset": "D", "method": "M", "metric": "m", "seed": ["10", *"9012"]})
    rows["p"] = ["none", "16", "0.1", "4", "0.01"]
    assert list(in_order(rows, ["dataset", "p"])["p"]) == ["0.01", "0.1", "4", "16", "none"]
    assert list(in_order(rows.assign(p="4"), ["dataset", "p"])["seed"]) == ["0", "1", "2", "9", "10"]


def test_rows_from_before_a_setting_are_of_its_default(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    before = exported(reduced)
    first, *others = project.cells("localscgdam", "table1", reduced)
    project.forget(run for cell in others for run in cell.runs)
    project.change(settings={"budget": {"sets": ["."], "default": 0, "label": "budget", "values": {0: {}}}})
    project.finish(first, [0.5, 0.5, 0.5])
    after = exported(reduced)
    assert set(before.index) == set(after.index) and set(after["budget"]) == {0}
