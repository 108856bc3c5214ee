"""What federated training gains over a reference: the difference seed by seed, with its interval."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.data.summary import Counts, by_site
from fedbench.files import Mark, mark
from fedbench.results.aggregate import along, by_seed, summarised, together
from fedbench.results.auc_interval import correlation, gain_interval
from fedbench.results.frame import NAN, Measured
from fedbench.results.places import Place
from fedbench.results.shipped import read_facts
from fedbench.results.statistics import half_width
from fedbench.store import predictions
from fedbench.store.record import PREDICTIONS
from fedbench.store.runs import Store
from fedbench.study.plan import Plan
from fedbench.study.references import FEDERATED, TRAINING, gain_over


def gains(plan: Plan, numbers: Sequence[Measured], reference: str) -> list[Measured]:
    """Return federated minus ``reference`` seed by seed, at the place that calls ``training`` the gain.

    The interval is over seeds, and that of an AUC over the draw of test samples, too.
    """
    rows = []
    for at, parts in along(numbers, TRAINING, (reference, FEDERATED), gain_over(reference)):
        of = {dict(part.place)[TRAINING]: part for part in parts}
        pair = [of[name] for name in (FEDERATED, reference) if name in of]
        # with one of them alone `together` says that there is nothing to compare
        differences = by_seed([part.values for part in pair], lambda values: values[0] - values[-1])
        gain = summarised(together(at, pair, differences, 2))
        shared = _correlation(plan, reference, gain)
        low, high = _interval(gain, pair, tested(plan, gain.place), shared)
        rows.append(replace(gain, low=low, high=high, paired=not math.isnan(shared)))
    return rows


def _interval(
    gain: Measured, pair: Sequence[Measured], counts: Mapping[str, Counts], shared: float
) -> tuple[float, float]:
    """Return the ends of the interval of a gain, none where nothing tells of its spread."""
    half, (metric, _, site) = float(half_width(gain.std, gain.n_seeds)), gain.metric.partition("@")
    if metric == "test_auc" and site in counts and not math.isnan(gain.mean):
        ours, other = (float(np.mean([part.values[seed] for seed in gain.values])) for part in pair)
        sizes = counts[site].positive or 0, counts[site].negative or 0
        return gain_interval(ours, other, *sizes, *(0.0 if math.isnan(of) else of for of in (half, shared)))
    if metric.startswith((*metric_table.SITES, "test_auc")):  # one over seeds alone would be too short
        return NAN, NAN
    return gain.mean - half, gain.mean + half


def tested(plan: Plan, place: Place) -> Mapping[str, Counts]:
    """Return the test samples of each site at a place, and of all by an empty name: counted here, else as shipped."""
    dataset, setting = str(place[0][1]), dict(place[1:])
    run = plan.cell(dataset, setting | {TRAINING: FEDERATED}, next(iter(plan.study.methods))).runs[0]
    if counted := by_site(run.data, run.seed, plan.config.data_dir):
        return counted
    key = run.data.partition_key(run.seed)
    splits = {split.partition("@"): counts for (of, split), counts in read_facts().items() if of == key}
    return {site: counts for (part, _, site), counts in splits.items() if part == "Test"}


def _correlation(plan: Plan, reference: str, gain: Measured) -> float:
    """Return the correlation of the AUCs of federated training and a reference; NaN where predictions lack.

    The local number of all test samples is a mean over models, and predictions do not tell of these.
    """
    name, _, site = gain.metric.partition("@")
    if name != "test_auc" or (reference == "local" and not site):
        return NAN
    dataset, setting = str(gain.place[0][1]), dict(gain.place[1:])
    tables = [
        _test_part(run.key, mark(Store().path(run.key) / PREDICTIONS))
        for training in (FEDERATED, reference)
        for run in plan.cell(dataset, setting | {TRAINING: training}, gain.method).runs
        if run.seed in gain.values
    ]
    known = [table[table["site"] == site] if site else table for table in tables if table is not None]
    samples = [table[["row", "label"]].to_numpy() for table in known]
    lacks = len(known) < 2 * len(gain.values)
    if lacks or not known or not all(np.array_equal(each, samples[0]) for each in samples):
        return NAN
    return correlation(samples[0][:, 1], *np.split(np.array([table["score"] for table in known]), 2))


@functools.lru_cache(maxsize=64)
def _test_part(key: str, _mark: Mark | None) -> pd.DataFrame | None:
    """Return the predictions of a run's test samples, read once; None where it kept no single score of each."""
    table = predictions.read(Store(), key)
    return table[table["part"] == "test"] if table is not None and "score" in table else None
