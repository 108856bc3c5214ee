"""What medical papers draw from predictions: ROC and precision-recall curves, calibration, confusion matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench.errors import UserError
from fedbench.report.figures.content import Content, Panel, curve, spread
from fedbench.report.figures.forest import ALL, IN_BRACKETS, site_of
from fedbench.report.figures.panels import BAND, panels_of
from fedbench.store import predictions
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.references import TRAINING

GRID = np.linspace(0, 1, 101)
"""False positive rates, or recalls, at which the curves of seeds are averaged."""
BINS, LEAST = 10, 10
"""Bins of a calibration curve, and how many samples each has at least."""
MATRIX = ("true negatives", "false positives", "false negatives", "true positives")

Seeds = Sequence[pd.DataFrame]
"""The predictions of each seed, with label, score and probability."""
Drawn = tuple[np.ndarray, list[np.ndarray], str, list[float]]
"""x [n], y [n] of each seed, the name of a number and its value for each seed."""


def roc(test: Seeds, _held_out: Seeds, _sensitivity: float) -> Drawn:
    """Return the sensitivity at each false positive rate of the grid, after the origin."""
    from sklearn import metrics  # a second of import, for these figures alone

    curves = [metrics.roc_curve(of["label"], of["score"])[:2] for of in test]
    areas = [metrics.roc_auc_score(of["label"], of["score"]) for of in test]
    return np.array([0, *GRID]), [np.array([0, *np.interp(GRID, *at)]) for at in curves], "AUC", areas


def precision_recall(test: Seeds, _held_out: Seeds, _sensitivity: float) -> Drawn:
    """Return the precision at the highest threshold that reaches each recall, as average precision counts it."""
    from sklearn import metrics  # a second of import, for these figures alone

    lines, means = [], []
    for of in test:
        precision, recall, _ = metrics.precision_recall_curve(of["label"], of["score"])
        # recalls fall; the last point has no threshold. A grid's 0.15 is a recall's 3 of 20
        lines.append(precision[-2::-1][np.searchsorted(recall[-2::-1], GRID[1:] - 1e-9)])
        means.append(metrics.average_precision_score(of["label"], of["score"]))
    return GRID[1:], lines, "AP", means


def calibration(test: Seeds, _held_out: Seeds, _sensitivity: float) -> Drawn:
    """Return the share of positives in bins of equally many samples, at their mean probability over seeds.

    There are fewer bins where equal probabilities leave a seed without all of them.
    """
    from sklearn import metrics
    from sklearn.calibration import calibration_curve

    scores = [metrics.brier_score_loss(of["label"], of["probability"]) for of in test]
    for bins in range(int(np.clip(len(test[0]) // LEAST, 1, BINS)), 0, -1):
        curves = [
            calibration_curve(of["label"], of["probability"], n_bins=bins, strategy="quantile") for of in test
        ]
        if all(len(share) == bins for share, _ in curves):
            break
    return np.mean([mean for _, mean in curves], axis=0), [share for share, _ in curves], "Brier", scores


def confusion(test: Seeds, held_out: Seeds, sensitivity: float) -> Drawn:
    """Return the counts of :data:`MATRIX` at the highest threshold that reaches a sensitivity on held-out samples."""
    from sklearn import metrics  # a second of import, for these figures alone

    counts, reached = [], []
    for of, chosen_on in zip(test, held_out, strict=True):
        _, tpr, thresholds = metrics.roc_curve(
            chosen_on["label"], chosen_on["score"], drop_intermediate=False
        )
        above = of["score"] >= thresholds[int(np.argmax(tpr >= sensitivity))]
        counts.append(metrics.confusion_matrix(of["label"], above, labels=[0, 1]).ravel().astype(float))
        reached.append(metrics.recall_score(of["label"], above))
    return np.arange(len(MATRIX)), counts, "sensitivity", reached


KINDS: Mapping[str, tuple[Callable[[Seeds, Seeds, float], Drawn], str, str, str]] = {
    "roc": (roc, "1 − specificity", "sensitivity", f"averaged at fixed false positive rates, {BAND}"),
    "pr": (precision_recall, "recall", "precision", f"averaged at fixed recalls, {BAND}"),
    "calibration": (
        calibration, "mean probability", "share of positives",
        f"in bins of equally many samples by the sigmoid of the score, {BAND}",
    ),
    "confusion": (confusion, "predicted", "label", "threshold chosen by each seed on validation samples"),
}  # fmt: skip
"""Of each kind: its curves, the axes, and how they are averaged over seeds."""


def content(plan: Plan, name: str) -> Content:
    """Return a curve for each method from the predictions of its runs; the panels are sites, and all test samples."""
    spec = plan.figure(name)
    lines_of, x_label, _, how = KINDS[spec.kind]
    matrix = spec.kind == "confusion"
    loaded, missing = _load(plan, name)
    counts = dict[str, tuple[int, int]]()

    def draw(label: str, cells: Sequence[Cell], metric: str) -> pd.DataFrame | None:
        cell = cells[0]
        test, held_out = _parts(loaded[cell.name], metric) if cell.name in loaded else ([], [])
        of_no_model = cell.setting.get(TRAINING) == "local" and not site_of(metric)
        if of_no_model or not test or (matrix and not held_out):
            return None
        counts[metric] = int(test[0]["label"].sum()), len(test[0])
        x, lines, what, values = lines_of(test, held_out, spec.sensitivity)
        points = spread(pd.DataFrame(dict(enumerate(lines)), index=x))
        points = points.assign(metric=MATRIX) if matrix else points
        return curve(label, points, remark=f"{what} {np.mean(values):.3f}", seeds=len(test))

    drawn, columns, empty = panels_of(plan, name, draw)
    panels = [_with_samples(plan, spec.kind, panel, *counts[panel.metric]) for panel in drawn]
    if panels and (lacking := [_samples(metric) for metric in spec.metrics if metric not in counts]):
        missing = missing or f"without test samples of both classes: {', '.join(lacking)}"
    if matrix and not panels:
        missing = missing or "no validation samples to choose a threshold on: give data.validation"
    local = "; local: each site by a model of its own, none over all" if "local" in spec.references else ""
    alone = f"one seed, {how.removesuffix(BAND)}".rstrip(", ")
    more = f"{local}; {IN_BRACKETS}"
    return Content(
        panels, columns, empty, x_label, f"mean over {{}}, {how}{more}", alone + more,
        look="matrix" if matrix else "curves", missing=missing,
    )  # fmt: skip


def _load(plan: Plan, name: str) -> tuple[dict[str, pd.DataFrame], str]:
    """Return the predictions of a figure's cells by name, and why the first that has none has none."""
    loaded, missing = dict[str, pd.DataFrame](), ""
    for cell in plan.cells(name):
        try:
            table = predictions.load_predictions(cell, Store(), plan.words(cell, keep_model=True))
            if "score" not in table:
                raise UserError(f"{cell.name} tells more than two classes apart")
            loaded[cell.name] = table
        except UserError as error:
            missing = missing or str(error)
    return loaded, missing


def _with_samples(plan: Plan, kind: str, panel: Panel, positives: int, n: int) -> Panel:
    """Let a panel's title name the samples in place of the metric: a site's and the positive of them.

    The guide of precision is the share of positives; the title of a matrix ends with the sensitivity reached.
    """
    samples, label = f"{_samples(panel.metric)} ({positives} of {n})", panel.y_label
    title = panel.title.replace(label, samples).replace(label.capitalize(), samples)
    reached = panel.points["remark"][:1] if kind == "confusion" else ()
    guide = (positives / n, positives / n) if kind == "pr" else (0.0, 1.0)
    return replace(panel, title=", ".join([title, *reached]), y_label=KINDS[kind][2], guide=guide)


def _samples(metric: str) -> str:
    return site_of(metric) or ALL


def _parts(table: pd.DataFrame, metric: str) -> tuple[Seeds, Seeds]:
    """Return the test samples that a metric is of, and all validation samples, by seed; none where a class lacks."""
    site = site_of(metric)
    test = table[(table["part"] == "test") & ((table["site"] == site) if site else True)]
    parts = test, table[table["part"] == "validation"]
    chosen, held_out = ([of for _, of in part.groupby("seed")] for part in parts)
    both = [seeds if all(of["label"].nunique() == 2 for of in seeds) else [] for seeds in (chosen, held_out)]
    return both[0], both[1]
