"""What a reader calls the metrics, data sets, methods and settings of a paper."""

from __future__ import annotations

from fedbench.cells import Paper, Value

METRICS = {
    "test_auc": "test AUC",
    "val_auc": "validation AUC",
    "test_ap": "test AP",
    "test_minority_accuracy": "minority accuracy",
    "test_overall_accuracy": "overall accuracy",
    "dual": "dual variable",
    "loss": "training loss",
}
GREEK = {"rho": "ρ", "alpha": "α", "delta": "δ", "beta": "β", "gamma": "γ", "mu": "μ"}


def metric_label(metric: str) -> str:
    """Name a metric for a reader: ``test_auc`` is "test AUC"."""
    return METRICS.get(metric, metric.replace("_", " "))


def axis_name(paper: Paper, axis: str) -> str:
    """Name an axis: a setting with a letter for a name by that letter, any other by its label."""
    if axis in ("dataset", "method"):
        return axis.capitalize()
    return GREEK.get(axis) or (axis if len(axis) == 1 else paper.settings[axis].label)


def axis_text(paper: Paper, axis: str, value: Value) -> str:
    """Name one value of an axis: datasets and methods by themselves, settings as "p = 4"."""
    if axis in ("dataset", "method"):
        return str(value)
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{axis_name(paper, axis)} = {shown.lower() if isinstance(value, bool) else shown}"
