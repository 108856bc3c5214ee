"""How far two models agree on the test samples of both, from the predictions that their runs kept."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection

import numpy as np
import pandas as pd

from fedbench.files import Mark, mark
from fedbench.results.places import Place
from fedbench.store import predictions
from fedbench.store.record import PREDICTIONS
from fedbench.store.runs import Store
from fedbench.study.plan import Plan
from fedbench.study.references import FEDERATED, TRAINING


def correlation(labels: np.ndarray, scores: np.ndarray, others: np.ndarray) -> float:
    """Return the correlation of two AUCs over draws of the test samples that both are of (DeLong et al. 1988).

    Args:
        labels: [n], 1 where positive.
        scores, others: [seeds, n] of both models; their AUCs are the means over seeds.

    Returns:
        In [-1, 1]; NaN with fewer than two samples of a class, or where an AUC does not depend on the draw.
    """
    counts = np.bincount(labels, minlength=2)
    if counts.min() < 2:
        return math.nan
    pair = [np.mean([_placements(labels == 1, of) for of in model], axis=0) for model in (scores, others)]
    covariance = sum(np.cov([of[labels == label] for of in pair]) / counts[label] for label in (0, 1))
    spread = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(np.clip(covariance[0, 1] / spread, -1, 1)) if spread > 0 else math.nan


def _placements(positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return of each sample the share of the other class that it is on the right side of, ties by half."""
    placed, ranks = np.empty(len(scores)), pd.Series(scores).rank().to_numpy()
    for of in (positive, ~positive):
        placed[of] = (ranks[of] - pd.Series(scores[of]).rank().to_numpy()) / (~of).sum()
    return np.where(positive, placed, 1 - placed)


def kept_correlation(
    plan: Plan, reference: str, place: Place, method: str, metric: str, seeds: Collection[int]
) -> float:
    """Return the correlation of the AUCs of federated training and a reference; NaN where predictions lack.

    The local number of all test samples is a mean over models, and predictions do not tell of these.
    """
    name, _, site = metric.partition("@")
    if name != "test_auc" or (reference == "local" and not site):
        return math.nan
    dataset, setting = str(place[0][1]), dict(place[1:])
    tables = [
        _test_part(run.key, mark(Store().path(run.key) / PREDICTIONS))
        for training in (FEDERATED, reference)
        for run in plan.cell(dataset, setting | {TRAINING: training}, method).runs
        if run.seed in seeds
    ]
    of_site = [table[table["site"] == site] if site else table for table in tables if table is not None]
    samples = [table[["row", "label"]].to_numpy() for table in of_site]
    if (
        not seeds
        or len(samples) < 2 * len(seeds)
        or not all(np.array_equal(each, samples[0]) for each in samples)
    ):
        return math.nan
    scores = np.array([table["score"] for table in of_site])
    return correlation(samples[0][:, 1], *np.split(scores, 2))


@functools.lru_cache(maxsize=64)
def _test_part(key: str, _mark: Mark | None) -> pd.DataFrame | None:
    """Return the predictions of a run's test samples, read once; None where it kept no single score of each."""
    table = predictions.read(Store(), key)
    return table[table["part"] == "test"] if table is not None and "score" in table else None
