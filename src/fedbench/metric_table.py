"""What is measured: every metric's label, direction, range, unit and smallest difference that matters."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from fedbench.errors import UserError, unknown


class Measure(BaseModel):
    """One metric. A paper's YAML declares further metrics under ``measures:``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Filled in by fedbench: its name in runs."""
    label: str
    """The metric's name in tables."""
    better: Literal["higher", "lower"] = "higher"
    """Whether higher or lower values are better."""
    low: float = 0.0
    """The least possible value."""
    high: float = math.inf
    """The largest possible value."""
    matters: float = 0.0
    """The smallest difference that matters; 0 if there is no such difference in general."""
    unit: str = ""
    """The unit; empty for a pure number."""
    decimals: int = 3
    """The number of decimals in cells without a published number; other cells have as many as the published number."""

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1: with it, larger is always better."""
        return 1 if self.better == "higher" else -1

    @property
    def ends(self) -> tuple[float, ...]:
        """Its least and its largest possible value where it has both, as a share has."""
        return (self.low, self.high) if math.isfinite(self.high - self.low) else ()


def _measure(name: str, label: str, better: Literal["higher", "lower"] = "higher", **facts: Any) -> Measure:
    return Measure(name=name, label=label, better=better, **facts)


def _table(*measures: Measure) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures}


ON_PARTS = _table(
    _measure("auc", "AUC", high=1.0, matters=0.005),
    _measure("ap", "AP", high=1.0, matters=0.005),
    _measure("accuracy", "accuracy", high=1.0, matters=0.01),
    _measure("overall_accuracy", "overall accuracy", high=1.0, matters=0.01),
    _measure("minority_accuracy", "minority accuracy", high=1.0, matters=0.01),
    _measure("balanced_accuracy", "balanced accuracy", high=1.0, matters=0.01),
    _measure("f1", "F1", high=1.0, matters=0.01),
    _measure("sensitivity_at_95_specificity", "sensitivity at 95 % specificity", high=1.0, matters=0.01),
    _measure("worst_client_accuracy", "worst client's accuracy", high=1.0, matters=0.01),
    _measure("client_accuracy_std", "spread of accuracy over clients", "lower", matters=0.01),
    _measure("loss", "loss", "lower", low=-math.inf),
    _measure("gradient_norm", "gradient norm", "lower"),
)
"""What is measured on a part of the data; runs record it as ``test_auc``, ``val_auc`` or ``train_auc``."""
OF_RUNS = _table(
    _measure("train_loss", "training loss", "lower", low=-math.inf),
    _measure("loss", "training loss", "lower", low=-math.inf),
    _measure("gradient_norm", "gradient norm", "lower"),
    _measure("dual", "dual variable", "lower"),
    _measure("iteration", "iterations", "lower", decimals=0),
    _measure("round", "rounds", "lower", decimals=0),
    _measure("samples", "samples drawn", "lower", decimals=0),
    _measure("samples_forward", "samples only scored", "lower", decimals=0),
    _measure("floats_up", "numbers sent to the server", "lower", unit="per client", decimals=0),
    _measure("floats_down", "numbers received from the server", "lower", unit="per client", decimals=0),
    _measure("floats_buffers", "batch-norm statistics sent", "lower", unit="per client", decimals=0),
    _measure("bytes", "traffic", "lower", unit="bytes per client", decimals=0),
    _measure("seconds", "training time", "lower", unit="s", decimals=1),
    _measure("rounds_to", "rounds to the target", "lower", decimals=0),
    _measure("sample_exponent", "exponent of samples in 1/ε", "lower", low=-math.inf, decimals=2),
    _measure("communication_exponent", "exponent of rounds in 1/ε", "lower", low=-math.inf, decimals=2),
)
"""What a run has as a whole, in its curve or over its budgets."""
OF_DATA = _table(
    _measure("n_samples", "samples", decimals=0),
    _measure("n_positive", "positives", decimals=0),
    _measure("n_negative", "negatives", decimals=0),
    _measure("positive_ratio", "share of positives", high=1.0),
    _measure("positive_percent", "positives (%)", high=100.0, decimals=2),
)
"""What can be counted of a dataset, for tables of kind ``facts``."""
PARTS = {"test": "test", "val": "validation", "train": "training"}
POINTS = {"_h": "at the running mean"}
"""Suffixes of the further points that a method evaluates, here LocalSCGDAM's h."""
SITES = {"worst_site_": "worst site's", "site_std_": "spread between sites of"}
"""Prefixes of numbers over the sites of the test samples; ``test_auc@SITE`` is that of one."""
DEVICES = {"device_mean_": "mean over clients of", "device_var_": "variance over clients of"}


SPENT = {
    "rounds": "round",
    "iterations": "iteration",
    "floats_up": "floats_up",
    "floats_down": "floats_down",
    "samples": "samples",
    "seconds": "seconds",
}
"""What a run spends on its way, and the column of its curve."""

CURVE_MEAN = "curve_mean_"


class Target(NamedTuple):
    """What of ``spent`` it takes until ``metric`` first reaches ``value``."""

    metric: str
    value: float
    spent: str = "rounds"


class Budget(NamedTuple):
    """The last ``metric`` that was measured before more than ``amount`` of ``spent`` was gone."""

    metric: str
    spent: str
    amount: float


def rounds_to(metric: str, target: float, spent: str = "rounds") -> str:
    """Name the metric "rounds, or what is ``spent``, until ``metric`` first reaches ``target``".

    Raises:
        ValueError: an AUC that chance reaches, or that none can.
    """
    if metric.endswith("_auc") and not 0.5 < target < 1:
        raise ValueError(
            f"rounds_to {metric}: a target lies between 0.5, which is chance, and 1; not at {target:g}"
        )
    return f"{spent}_to_{metric}_{_exact(target)}"


@functools.lru_cache(maxsize=1024)
def target(name: str) -> Target | None:
    """Return what :func:`rounds_to` named, None for any other name."""
    match = re.fullmatch(rf"({'|'.join(SPENT)})_to_(.+)_([^_]+)", name)
    try:
        return Target(match[2], float(match[3]), match[1]) if match else None
    except ValueError:
        return None


def within(metric: str, spent: str, amount: float) -> str:
    """Name the metric "``metric`` at the last evaluation within a budget"; :func:`budget` reads it."""
    return f"{metric}_within_{spent}_{_exact(amount)}"


def _exact(number: float) -> str:
    """Write a number short, but with all its digits: it is read from the name again."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


@functools.lru_cache(maxsize=1024)
def budget(name: str) -> Budget | None:
    """Return what :func:`within` named, None for any other name."""
    match = re.fullmatch(rf"(.+)_within_({'|'.join(SPENT)})_([^_]+)", name)
    try:
        return Budget(match[1], match[2], float(match[3])) if match else None
    except ValueError:
        return None


def over_curve(metric: str) -> str:
    """Name the mean of ``metric`` over the iterations of a run; :func:`curve_mean` reads it."""
    return f"{CURVE_MEAN}{metric}"


def curve_mean(name: str) -> str:
    """Return the metric whose mean over a run :func:`over_curve` named, empty for any other name."""
    return name.removeprefix(CURVE_MEAN) if name.startswith(CURVE_MEAN) else ""


def known(additions: Mapping[str, Measure] | None) -> list[str]:
    """List the names a table or figure may ask for, without those of clients and further points."""
    return [
        *(f"{part}_{name}" for part in ("test", "val") for name in (*ON_PARTS, *(additions or {}))),
        *OF_RUNS,
        *OF_DATA,
        *(additions or {}),
    ]


def find(name: str, additions: Mapping[str, Measure] | None = None) -> Measure | None:
    """Return the measure a run records as ``name``, None where there is none; ``additions`` are a paper's additions."""
    for table in (additions or {}, OF_RUNS, OF_DATA):
        if name in table:
            return table[name]
    if (wanted := target(name)) and (base := find(wanted.metric, additions)):
        spent = OF_RUNS[SPENT[wanted.spent]].label
        return _renamed(OF_RUNS["rounds_to"], name, f"{spent} to {base.label} {wanted.value:g}")
    if (limit := budget(name)) and (base := find(limit.metric, additions)):
        spent = OF_RUNS[SPENT[limit.spent]].label
        return _renamed(base, name, f"{base.label} within {limit.amount:g} {spent}")
    plain_name, at, site = name.partition("@")
    if at and site and (base := find(plain_name, additions)):
        return _renamed(base, name, f"{base.label}, {site}")
    for prefix, words in (DEVICES | SITES).items():
        if name.startswith(prefix) and (base := find(name.removeprefix(prefix), additions)):
            spread = prefix in ("device_var_", "site_std_")
            changed: dict[str, Any] = {"better": "lower", "high": math.inf, "matters": 0.0} if spread else {}
            return _renamed(base, name, f"{words} {base.label}", **changed)
    for suffix, words in POINTS.items():
        if name.endswith(suffix) and (base := find(name.removesuffix(suffix), additions)):
            return _renamed(base, name, f"{base.label} {words}")
    part, _, rest = name.partition("_")
    if part not in PARTS or (base := _on_part(rest) or (additions or {}).get(rest)) is None:
        return None
    plain = part == "test" and " " in base.label  # "minority accuracy" is long enough
    return _renamed(base, name, base.label if plain else f"{PARTS[part]} {base.label}")


def _on_part(name: str) -> Measure | None:
    """Return what is measured on a part; the recall of a class is called by its number."""
    if (number := name.removeprefix("recall_")) != name and number.isdigit():
        return _measure(name, f"recall of class {number}", high=1.0, matters=0.01)
    return ON_PARTS.get(name)


def _renamed(base: Measure, name: str, label: str, **changed: Any) -> Measure:
    return base.model_copy(update={"name": name, "label": label, **changed})


def measure(name: str, additions: Mapping[str, Measure] | None = None) -> Measure:
    """Return the measure called ``name``.

    Raises:
        UserError: nothing measures it.
    """
    if (known_measure := find(name, additions)) is None:
        if find(of_test := f"test_{name}", additions):
            raise UserError(f"unknown metric {name!r}. Did you mean {of_test!r}?")
        raise unknown("metric", name, known(additions))
    return known_measure


def sign(name: str, additions: Mapping[str, Measure] | None = None) -> int:
    """Return 1 for a metric that rises as a run gets better, -1 for one that falls; 1 for one that is in no table."""
    known_measure = find(name, additions)
    return 1 if known_measure is None else known_measure.sign


def label(name: str) -> str:
    """Name a metric for a reader: ``test_auc`` is "test AUC"; one that is in no table is called as it is recorded."""
    known_measure = find(name)
    return name.replace("_", " ") if known_measure is None else known_measure.label
