"""``references: [local, pooled]``: the same cells without federation, beside those that are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_project import Project, line, localscgdam, run_result

from fedbench.data.summary import Counts
from fedbench.report import described, tables
from fedbench.report.figures import build as figures
from fedbench.results import gains
from fedbench.results.auc_interval import gain_interval
from fedbench.results.export import export_reproduced
from fedbench.results.statistics import half_width
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CONFIG = Config(scale="reduced", datasets=["CIFAR10"])
SITES = ["test_auc", "test_auc@Basel", "test_auc@Lyon", "worst_site_test_auc"]
COUNTS = {"": Counts(1000, 500, 500), "Basel": Counts(400, 200, 200), "Lyon": Counts(10, 5, 5)}
NO_MODEL = "no AUC: one class in training"
BASEL = {"federated": [0.90, 0.92, 0.91], "local": [0.70, 0.71, 0.75], "pooled": [0.9, 0.9, 0.9]}


def saved(project: Project, table: dict[str, Any], train: dict[str, Any] | None = None) -> None:
    paper = localscgdam()
    paper["defaults"]["train"] = paper["defaults"]["train"] | (train or {})
    paper["tables"]["table1"] |= {"methods": ["CoDA", "LocalSGDM"], "settings": {"p": [4]}, **table}
    paper["claims"] = []
    project.save_paper("localscgdam", paper)


def test_cells_of_references_stand_beside_federated_ones_which_stay_what_they_are(project: Project) -> None:
    saved(project, {})
    before = Plan(CONFIG, "localscgdam").cells("table1")
    saved(project, {"references": ["local", "pooled"]}, {"keep_model": True})
    kept = Plan(CONFIG, "localscgdam").cells("table1")
    saved(project, {"references": ["local", "pooled"]})
    cells = {cell.name: cell for cell in Plan(CONFIG, "localscgdam").cells("table1")}
    assert len(cells) == 3 * len(before) == len(kept)
    for cell in before:
        folder, method = cell.name.rsplit("/", 1)
        ours = [cells[f"{folder}{end}/{method}"] for end in ("", "_traininglocal", "_trainingpooled")]
        assert ours[0].key == cell.key and ours[0].path == cell.path
        assert [c.runs[0].train.reference for c in ours] == [None, "local", "pooled"]
        assert {c.runs[0].data.partition_key(0) for c in ours} == {cell.runs[0].data.partition_key(0)}
        assert [{**c.runs[0].params} for c in ours] == [{**cell.runs[0].params}] * 3
    models = {cell.setting["training"]: cell.runs[0].train.keep_model for cell in kept}
    assert models == {"federated": True, "local": False, "pooled": True}


@pytest.mark.parametrize(
    ("given", "rows", "columns"),
    [
        ({"rows": ["metric"], "columns": ["method"]}, ["method", "metric"], ["training"]),
        ({"rows": ["method", "training"], "columns": ["metric"]}, ["method", "training"], ["metric"]),
    ],
)
def test_they_become_the_columns_unless_they_are_placed(
    project: Project, given: dict[str, Any], rows: list[str], columns: list[str]
) -> None:
    saved(project, {"references": ["pooled"], "datasets": ["CIFAR10"], **given})
    spec = load_paper("localscgdam").tables["table1"]
    assert (spec.rows, spec.columns, spec.settings["training"]) == (rows, columns, ["pooled", "federated"])


TABLE: dict[str, Any] = {
    "datasets": ["CIFAR10"], "references": ["local", "pooled"], "metrics": SITES, "rows": ["metric"],
    "columns": ["method"], "published": None,
}  # fmt: skip


def finished(project: Project, one_class: bool = False, **table: Any) -> Plan:
    """CoDA's runs of the three kinds; Lyon has one class where ``one_class`` says so, and no local model then."""
    saved(project, TABLE | table)
    plan = Plan(CONFIG, "localscgdam")
    for cell in plan.cells("table1"):
        kind, runs = str(cell.setting["training"]), []
        for run, basel in zip(cell.runs, BASEL[kind] if cell.method == "CoDA" else [0.8] * 3, strict=True):
            silent = one_class and kind == "local"
            metrics = {"test_auc": basel, "test_auc@Basel": basel, "worst_site_test_auc": basel}
            metrics["test_auc@Lyon"] = float("nan") if silent else 0.6
            facts = {"test_auc@Lyon": {"sign": NO_MODEL}} if silent else {}
            runs.append(run_result(run.seed, run.key, metrics) | {"facts": facts})
        project.write(cell, runs)
    return plan


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gains, "by_site", lambda spec, seed, data_dir: COUNTS)


def test_a_loss_is_a_number_that_latex_calculates_with(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BASEL, "local", [0.95] * 3)
    macros = tables.table_of(finished(project), "table1").macros()
    assert "{-0.040}" in macros and "\u2212" not in macros


def test_the_gain_is_taken_seed_by_seed_with_its_interval(project: Project) -> None:
    table = tables.table_of(finished(project), "table1")
    rows, text = table.rows, table.terminal(True)
    gains = rows[(rows["training"] == "gain over local") & (rows["method"] == "CoDA")].set_index("metric")
    basel = gains.loc["test_auc@Basel"]
    assert basel["values"] == "0:0.2 1:0.21 2:0.16" and basel["mean"] == pytest.approx(0.19)
    ends = gain_interval(0.91, 0.72, 200, 200, float(half_width(basel["std"], 3)))
    assert basel[["low", "high"]].tolist() == pytest.approx(ends)
    lyon = gains.loc["test_auc@Lyon", ["low", "high"]].tolist()
    assert lyon == pytest.approx(gain_interval(0.6, 0.6, 5, 5))
    assert pd.isna(gains.loc["worst_site_test_auc", "low"]), "over patients nothing is known of it"
    assert {*rows["training"]} == {"local", "pooled", "federated", "gain over local"}
    shown = line(text[text.index("CoDA") :], "test AUC, Basel")
    assert shown.split()[3:5] == ["0.720±0.026", "0.900*±0.000"] and "+0.190±0.026 [+0.1" in shown
    assert "gains in test AUC, Basel (CoDA); 3 of 4 intervals of sites’ gains hold 0." in text
    assert "90 % interval of a gain" in text and "trains alone" in text and "federated minus local" in text


def test_patients_with_several_samples_are_noted_where_there_are_intervals(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = finished(project)
    monkeypatch.setattr(described, "repeats", lambda spec, data_dir: spec.dataset == "cifar10")
    note = "CIFAR10: patients have several samples; intervals take samples as independent"
    assert note in tables.table_of(plan, "table1").markdown()
    saved(project, {})
    assert note not in tables.table_of(Plan(CONFIG, "localscgdam"), "table1").markdown(), "it has no interval"


def scored(plan: Plan, cell: Cell) -> None:
    """Write predictions of a cell's runs: Basel's patients alike in all kinds of training, Lyon's as they come."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=400)
    for run in cell.runs:
        label = np.arange(410) % 2
        of_lyon = np.random.default_rng(int(run.key, 16)).normal(size=10)
        score = np.concatenate([shared + label[:400], of_lyon])
        table = pd.DataFrame({"part": "test", "row": range(410), "site": ["Basel"] * 400 + ["Lyon"] * 10})
        text = table.assign(label=label, score=score).to_csv(index=False).encode()
        record = Store().load(run.key)
        assert record is not None
        Store().set_aside(run.key)
        with Store().claim(run.key):
            Store().finish(record, [], [], {"predictions.csv": text})


def test_where_predictions_of_both_are_kept_the_interval_is_paired_over_patients(project: Project) -> None:
    plan = finished(project)
    before = tables.table_of(plan, "table1")
    assert "as if the models had not shared these" in before.markdown()
    for cell in plan.cells("table1"):
        if cell.method == "CoDA" and cell.setting["training"] != "pooled":
            scored(plan, cell)
    after = tables.table_of(Plan(CONFIG, "localscgdam"), "table1")
    at = ["training", "method", "metric"]
    old, new = (table.rows.set_index(at) for table in (before, after))
    basel, everyone = (("gain over local", "CoDA", metric) for metric in ("test_auc@Basel", "test_auc"))
    seeds = float(half_width(new.loc[basel, "std"], 3))
    ends = gain_interval(0.91, 0.72, 200, 200, seeds, 1.0)
    assert new.loc[basel, ["low", "high"]].tolist() == pytest.approx(ends), "equal scores correlate by 1"
    assert new.loc[basel, "mean"] == old.loc[basel, "mean"] and new.loc[basel, "low"] > old.loc[basel, "low"]
    assert new.loc[everyone, "low"] == old.loc[everyone, "low"], "a mean over models has no scores"
    text = after.markdown()
    assert "paired over these (DeLong et al. 1988); that of test AUC" in text


def test_a_hospital_without_a_local_model_says_so_shipped_too(project: Project) -> None:
    plan = finished(project, one_class=True)

    def holds(mark: str) -> None:
        table = tables.table_of(Plan(CONFIG, "localscgdam"), "table1")
        for form in (table.terminal(True), table.markdown(), table.tex()):
            assert NO_MODEL in form and "undefined" in form
        assert f"{NO_MODEL}{mark}" in line(table.terminal(True), "test AUC, Lyon")
        said = table.rows.set_index(["training", "method", "metric"])
        assert said.loc[("local", "CoDA", "test_auc@Lyon"), "reason"] == NO_MODEL
        assert said.loc[("federated", "CoDA", "test_auc@Lyon"), "mean"] == pytest.approx(0.6)

    holds("")
    assert NO_MODEL in export_reproduced(plan, "table1").read_text()
    for cell in plan.cells("table1"):
        (project.root / cell.path).unlink()
        project.forget(cell.runs)
    holds("‡")


def test_a_hospital_that_tests_on_nobody_or_on_one_class_is_named_in_few_words(project: Project) -> None:
    plan = finished(project, metrics=[*SITES, "test_auc@Davos"])
    cell = next(c for c in plan.cells("table1") if c.setting["training"] == "federated")
    metrics = {metric: float("nan") if metric == "test_auc@Lyon" else 0.7 for metric in SITES}
    project.write(cell, [run_result(run.seed, run.key, metrics) for run in cell.runs])
    rows = tables.table_of(Plan(CONFIG), "table1").rows.set_index(["training", "method", "metric"])["reason"]
    assert rows["federated", cell.method, "test_auc@Lyon"] == "no AUC: one class in test"
    assert rows["federated", cell.method, "test_auc@Davos"] == "no test sample of Davos"


def test_what_was_shipped_before_is_of_federated_runs(project: Project) -> None:
    saved(project, {**TABLE, "references": []})
    plan = Plan(CONFIG, "localscgdam")
    for cell in plan.cells("table1"):
        project.finish(cell, BASEL["federated"])
    before = pd.read_csv(export_reproduced(plan, "table1"), dtype=str)
    after = pd.read_csv(export_reproduced(finished(project), "table1"), dtype=str)
    assert "training" not in before and after.groupby(["key", "metric"]).size().max() == 1
    assert {*after.loc[after["key"].isin(before["key"]), "training"]} == {"federated"}


def test_a_forest_of_gains_has_a_row_for_each_site_and_its_line_at_0(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(project)
    monkeypatch.setattr(described, "repeats", lambda spec, data_dir: True)
    paper = localscgdam()
    forest = {"title": "Gain", "kind": "forest", "panels": "dataset", "datasets": ["CIFAR10"], "methods": ["CoDA"],
              "settings": {"p": [4]}, "references": ["local"], "metrics": SITES[:3]}  # fmt: skip
    paper["figures"] = {"figure1": forest}
    project.save_paper("localscgdam", paper)
    drawing = figures.drawing_of(Plan(CONFIG, "localscgdam"), "figure1")
    drawn = drawing.points
    assert drawn["mean"].tolist() == pytest.approx([0.19, 0.19, 0.0]) and {*drawn["curve"]} == {"CoDA"}
    assert drawn["low"].iloc[1] > 0 > drawn["low"].iloc[2] and drawn["positives"].tolist() == [500, 200, 5]
    (axes,) = drawing.picture.axes
    assert axes.get_xlabel() == "test AUC: federated − local"
    assert any(set(line.get_xdata()) == {0.0} for line in axes.lines) and "over seeds and" in drawing.words
    assert "CIFAR10: patients have several samples" in drawing.words
