"""Figures from predictions: curves, calibration and confusion matrices against naive counts, by site and pooled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn import metrics
from toy import AS_IT_IS, BY_SITE, write_clinic, write_project, write_yaml

import fedbench
from fedbench.report.figures import predicted
from fedbench.report.figures.build import drawing_of, save_figure
from fedbench.store import predictions
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan


def samples(seed: int, n: int = 200, positives: int = 20) -> pd.DataFrame:
    """Labels and scores, some of them equal."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(n) < positives).astype(int)
    score = np.round(rng.normal(size=n) + 1.5 * label, 1)
    return pd.DataFrame({"label": label, "score": score, "probability": 1 / (1 + np.exp(-score))})


def rates(of: pd.DataFrame, threshold: float) -> tuple[float, float, float]:
    """Sensitivity, false positive rate and precision of what scores at least a threshold, counted."""
    above, sick = of["score"] >= threshold, of["label"] == 1
    tp, fp = (above & sick).sum(), (above & ~sick).sum()
    return tp / sick.sum(), fp / (~sick).sum(), tp / max(tp + fp, 1)


def test_a_roc_curve_passes_the_points_of_all_thresholds() -> None:
    test = [samples(0), samples(1)]
    x, lines, _, aucs = predicted.roc(test, [], 0.9)
    assert (x[0], *(line[0] for line in lines)) == (0, 0, 0) and all(line[-1] == 1 for line in lines)
    for of, line, auc in zip(test, lines, aucs, strict=True):
        points = [(0.0, 0.0, 1.0), *(rates(of, threshold) for threshold in of["score"].unique())]
        for rate, value in zip(x[1:], line[1:], strict=True):
            assert max(tpr for tpr, fpr, _ in points if fpr <= rate + 1e-9) <= value + 1e-9
            following = min(fpr for _, fpr, _ in points if fpr >= rate - 1e-9)
            assert value <= max(tpr for tpr, fpr, _ in points if fpr == following) + 1e-9
        assert np.trapezoid(line, x) == pytest.approx(auc, abs=0.01)
        assert line[1] == max(tpr for tpr, fpr, _ in points if fpr == 0)


def test_precision_at_a_recall_is_that_of_the_first_threshold_that_reaches_it() -> None:
    """Twenty positives: the grid has five recalls for each, so that the mean of the steps is average precision."""
    of = samples(2)
    recalls, (line,), _, (ap,) = predicted.precision_recall([of], [], 0.9)
    for recall, precision in zip(recalls, line, strict=True):
        threshold = max(t for t in of["score"].unique() if rates(of, t)[0] >= recall - 1e-12)
        assert precision == rates(of, threshold)[2]
    assert line.mean() == pytest.approx(ap, rel=1e-12)


def test_calibration_counts_positives_in_bins_of_equally_many_samples() -> None:
    of = samples(3, n=100, positives=40).sort_values("probability", ignore_index=True)
    of["probability"] = (np.arange(100) + 0.5) / 100
    x, (line,), name, (brier,) = predicted.calibration([of], [], 0.9)
    tenths = np.arange(100) // 10
    assert x == pytest.approx(of.groupby(tenths)["probability"].mean().to_numpy())
    assert line == pytest.approx(of.groupby(tenths)["label"].mean().to_numpy())
    assert name == "Brier" and brier == pytest.approx(((of["label"] - of["probability"]) ** 2).mean())
    of, other = samples(4), samples(5)
    of["probability"] = np.where(of["score"] > 0, 0.75, 0.25)
    x, lines, _, _ = predicted.calibration([of, other], [], 0.9)
    assert all(len(line) == len(x) for line in lines) and np.isfinite(x).all(), "equal ones leave fewer bins"


@pytest.mark.parametrize("sensitivity", [0.5, 0.9, 1.0])
def test_the_threshold_of_a_confusion_matrix_is_chosen_on_held_out_samples(sensitivity: float) -> None:
    test, held_out = samples(6), samples(7)
    _, (counts,), _, (reached,) = predicted.confusion([test], [held_out], sensitivity)
    threshold = max(t for t in held_out["score"].unique() if rates(held_out, t)[0] >= sensitivity)
    above, sick = test["score"] >= threshold, test["label"] == 1
    assert counts.tolist() == [
        (~above & ~sick).sum(), (above & ~sick).sum(), (~above & sick).sum(), (above & sick).sum()
    ]  # fmt: skip
    assert reached == rates(test, threshold)[0]
    table = pd.concat([test.assign(part="test"), held_out.assign(part="validation")])
    (chosen,), (validation,) = predicted._parts(table.assign(seed=0, site="Basel"), "test_auc@Basel")
    assert {*chosen["part"]} == {"test"} and {*validation["part"]} == {"validation"}


def test_the_threshold_may_lie_on_a_straight_part_of_the_curve() -> None:
    held_out = pd.DataFrame({"label": [1, 1, 1, 1, 1, 0], "score": [6, 5, 4, 3, 2, 1]})
    test = pd.DataFrame({"label": [1, 0, 0], "score": [4.5, 3.5, 2.5]})
    _, (counts,), _, _ = predicted.confusion([test], [held_out], 0.6)
    assert counts.tolist() == [2, 0, 0, 1], "three of five reach 4"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to train in, not that of the other tests of reports."""
    write_project(tmp_path, tmp_path / "data")
    monkeypatch.chdir(tmp_path)


KINDS = {
    "figure_roc": {"kind": "roc", "panels": "metric"},
    "figure_pr": {"kind": "pr", "panels": "metric"},
    "figure_calibration": {"kind": "calibration", "panels": "metric"},
    "figure_confusion": {"kind": "confusion", "panels": ["metric", "method"]},
}


def study(**changes: Any) -> Plan:
    rng = np.random.default_rng(0)
    sick = np.arange(160) % 4 == 0
    table = {
        "dose": rng.normal(size=160) + sick, "kind": np.where(sick, "b", "a"),
        "hospital": np.where(np.arange(160) % 3 == 0, "Basel", "Lyon"),
    }  # fmt: skip
    pd.DataFrame(table).to_csv("clinic.csv", index=False)
    described = "file: clinic.csv\nlabel: kind\nsite: hospital\ntest_share: 0.3\n"
    paper = write_clinic(described, {}, AS_IT_IS | BY_SITE | {"validation": 0.3})
    del paper["tables"], paper["tune"]
    shown = {"datasets": ["Digits"], "methods": ["Plain", "Proximal"], "settings": {}}
    shown["metrics"] = ["test_auc", "test_auc@sites"]
    paper["figures"] = {name: {"title": name, **shown, **of, **changes} for name, of in KINDS.items()}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return Plan(load_config(), "toy")


@pytest.mark.usefixtures("project")
def test_cells_of_such_figures_keep_predictions_unasked_and_are_drawn_by_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = study()
    words = drawing_of(plan, "figure_roc").words
    assert "not trained here" in words and "trained without" not in words
    for cell in plan.cells():
        fedbench.run(cell)
    for name in KINDS:
        drawing = drawing_of(plan, name)
        titles = " ".join(panel.title for panel in drawing.content.panels)
        assert len(drawing.content.panels) == (6 if name == "figure_confusion" else 3), name
        assert all(site in titles for site in ("Basel", "Lyon", "all test samples"))
        assert all(path.stat().st_size > 1000 for path in save_figure(plan, name)[:3])
        points = drawing.points
        assert len(points) and points["mean"].between(points["low"], points["high"]).all()
    shown = predictions.load_predictions(plan.cells()[0], Store(), "")
    test = shown[(shown["part"] == "test") & (shown["site"] == "Basel")]
    expected = np.mean([metrics.roc_auc_score(of["label"], of["score"]) for _, of in test.groupby("seed")])
    panel = next(panel for panel in drawing_of(plan, "figure_roc").content.panels if "Basel" in panel.title)
    assert panel.points["remark"].iloc[0] == f"AUC {expected:.3f}"
    load = predictions.load_predictions

    spared = {"Plain"}

    def healthy_lyon(cell: Cell, store: Store, words: str) -> pd.DataFrame:
        table = load(cell, store, words)
        kept = (table["site"] != "Lyon") | (cell.method in spared)
        return table.assign(label=table["label"].where(kept, 0))

    monkeypatch.setattr(predictions, "load_predictions", healthy_lyon)
    drawing = drawing_of(plan, "figure_confusion")
    assert sorted(len(panel.points) for panel in drawing.content.panels) == [0, 4, 4, 4, 4, 4]
    assert "no result yet" in [text.get_text() for axes in drawing.picture.axes for text in axes.texts]
    spared.clear()
    drawing = drawing_of(plan, "figure_roc")
    assert not [panel for panel in drawing.content.panels if "Lyon" in panel.title], "one class alone"
    assert drawing.words.endswith("without test samples of both classes: Lyon.")
    tested = "part == 'test'"
    monkeypatch.setattr(predictions, "load_predictions", lambda cell, *of: load(cell, *of).query(tested))
    assert drawing_of(plan, "figure_confusion").words.endswith("choose a threshold on: give data.validation.")


@pytest.mark.usefixtures("project")
def test_references_are_curves_of_their_own_local_by_the_model_of_each_site() -> None:
    study()
    paper = yaml.safe_load(Path("config/papers/toy.yaml").read_text())
    del paper["figures"]["figure_confusion"]
    for figure in paper["figures"].values():
        figure |= {"methods": ["Plain"], "references": ["local", "pooled"]}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    plan = Plan(load_config(), "toy")
    results = {str(cell.setting["training"]): fedbench.run(cell) for cell in plan.cells()}
    for name in paper["figures"]:
        for panel in drawing_of(plan, name).content.panels:
            kinds = ["local", "pooled", "federated"][("all test samples" in panel.title) :]
            assert [label for label, _ in panel.curves] == kinds, (name, panel.title)
    drawing = drawing_of(plan, "figure_roc")
    assert "local: each site by a model of its own, none over all" in drawing.words
    basel = next(panel for panel in drawing.content.panels if "Basel" in panel.title)
    for label, points in basel.curves:
        assert {*points["remark"]} == {f"AUC {results[label].metrics['test_auc@Basel']:.3f}"}


@pytest.mark.usefixtures("project")
def test_cells_that_kept_none_are_named_with_the_cure() -> None:
    study(kind="curves", metrics=["test_auc"], panels="dataset")
    first = Plan(load_config(), "toy").cells()[0]
    fedbench.run(first)
    assert f"fedbench forget {first.name}" in drawing_of(study(), "figure_roc").words
