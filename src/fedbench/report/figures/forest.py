"""Rows below each other, a mark and its interval in each: of hospitals as medical papers show them, methods apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedbench.data.summary import Counts
from fedbench.report import described
from fedbench.report.figures.content import Content, means
from fedbench.report.figures.panels import panels_of
from fedbench.report.legend import shared_samples
from fedbench.report.verdict_words import LEVEL_TEXT
from fedbench.results.aggregate import measure_cells
from fedbench.results.auc_interval import auc_interval
from fedbench.results.frame import FINISHED, Measured
from fedbench.results.gains import gains, tested
from fedbench.results.places import place_of
from fedbench.results.shipped import Shipped
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.references import GAINS, TRAINING

ALL = "all test samples"
IN_BRACKETS = "in brackets: positive test samples of all"
BARS = f"bars: {LEVEL_TEXT} of the mean AUC over the draw of test samples (Newcombe 2006); {IN_BRACKETS}"
OF_GAINS = f"bars: {LEVEL_TEXT} over seeds and the draw of test samples, {{}}; {IN_BRACKETS}"
NO_BARS = "no intervals, as the data of these numbers are not prepared here"


def content(plan: Plan, name: str) -> Content:
    """Return a panel for each dataset with results, a curve for each method; ``x`` of its points is the row."""
    paper, spec, shipped = plan.study, plan.figure(name), Shipped(plan)

    def draw(label: str, cells: Sequence[Cell], _metric: str) -> pd.DataFrame | None:
        measured = measure_cells(cells, spec.metrics, shipped)
        if spec.references:
            measured = gains(plan, measured, spec.references[0])
        return rows_of(label, measured, tested(plan, place_of(cells[0].dataset, cells[0].setting)))

    panels, _, empty = panels_of(plan, name, draw, inside=["metric", TRAINING])
    measure = paper.measure(spec.metrics[0].partition("@")[0])
    over, no_effect = "", 0.5 if measure.name.endswith("_auc") else None
    if spec.references:
        over, no_effect = f": federated − {spec.references[0]}", 0.0
    drawn, bars = Content(panels).points, NO_BARS
    if len(drawn) and drawn["positives"].any():
        known = drawn[drawn["low"].notna()]
        labels = [paper.measure(metric).label for metric in known["metric"]]
        bars = OF_GAINS.format(shared_samples(known.assign(label=labels))) if spec.references else BARS
        repeated = described.repeated(plan.cells(name), Path(plan.config.data_dir)).rstrip(".")
        bars = "; ".join(filter(None, [bars, repeated]))
    words = f"mean over {{}}, dots: each seed, {bars}"
    rows = tuple(site_of(metric) or ALL for metric in spec.metrics)
    return Content(
        panels, 1, empty, measure.label + over, words, words, look="rows", rows=rows, no_effect=no_effect
    )


def rows_of(label: str, measured: Sequence[Measured], counts: Mapping[str, Counts]) -> pd.DataFrame | None:
    """Return the values of a method, a row for each of its measurements; None where it has none."""
    tested_on = [counts.get(site_of(one.metric), Counts(0, 0, 0)) for one in measured]
    samples = [(of.positive or 0, of.negative or 0) for of in tested_on]
    low, high = zip(*map(_interval, measured, samples), strict=True)
    positives, negatives = zip(*samples, strict=True)
    lacking = dict.fromkeys(one.status for one in measured if one.status != FINISHED)
    return means(
        label, measured, ", ".join(lacking), x=range(len(measured)), metric=[one.metric for one in measured],
        low=low, high=high, positives=positives, negatives=negatives, paired=[one.paired for one in measured],
    )  # fmt: skip


def _interval(measured: Measured, samples: tuple[int, int]) -> tuple[float, float]:
    """Return the ends of a gain's interval, those of an AUC over the draw of its positive and negative samples."""
    if dict(measured.place).get(TRAINING) not in GAINS and measured.metric.partition("@")[0].endswith("_auc"):
        return auc_interval(measured.mean, *samples)
    return measured.low, measured.high


def site_of(metric: str) -> str:
    """Return the site of a metric's test samples, empty where it is of all."""
    return metric.partition("@")[2]
