"""What a reader calls the metrics, data sets, methods and settings of a paper."""

from __future__ import annotations

from fedbench.cells import Paper, Value

METRICS = {
    "test_auc": "test AUC",
    "val_auc": "validation AUC",
    "minority_test_accuracy": "minority accuracy",
    "overall_test_accuracy": "overall accuracy",
    "test_ap": "test AP",
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
    shown = (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if _real(value)
        else value
    )
    return f"{axis_name(paper, axis)} = {shown}"


def _real(value: Value) -> bool:
    return isinstance(value, int | float)
