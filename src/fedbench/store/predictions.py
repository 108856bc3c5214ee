"""The scores that finished runs kept of their test and validation samples, as one table."""

from __future__ import annotations

import io
import logging

import numpy as np
import pandas as pd

from fedbench.data import datasets
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store.record import MODEL, PREDICTIONS, Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell

log = logging.getLogger(__name__)

EACH_CLIENT = "each client has a model of its own (train.reference: local), and these are not kept"
FIRST = ("seed", "part", "row", "group", "site", "label")
"""The columns before those of scores."""


def finished_runs(cell: Cell, store: Store, words: str) -> list[tuple[RunSpec, Record]]:
    """Return the runs of a cell that finished; those that diverged are warned of.

    ``words`` are those by which `fedbench run` keeps its predictions (:meth:`~fedbench.study.plan.Plan.words`).

    Raises:
        UserError: one was not trained here, or all diverged.
    """
    records = [(run, store.load(run.key)) for run in cell.runs]
    if missing := [run.seed for run, record in records if record is None]:
        raise UserError(
            f"{cell.name}: seed {missing[0]} was not trained here; `fedbench run {words}` trains it and "
            "keeps its predictions"
        )
    known = [(run, record) for run, record in records if record is not None]
    for run, record in known:
        if record.status != "finished":
            log.warning("%s: seed %d %s: it predicts nothing", cell.name, run.seed, record.status)
    finished = [(run, record) for run, record in known if record.status == "finished"]
    if not finished:
        raise UserError(f"{cell.name}: all seeds diverged; there is nothing to predict")
    return finished


def lacking(cell: Cell, record: Record, file: str, words: str) -> UserError:
    """Return the error for a run that did not keep a file; ``words`` as for :func:`finished_runs`."""
    seed = record.spec["seed"]
    if MODEL in record.files and file == PREDICTIONS:
        return UserError(f"{cell.name}: seed {seed}: what it learns has no score for each sample")
    local, or_no_sites = record.spec["train"].get("reference") == "local", ""
    if local and file == MODEL:
        return UserError(f"{cell.name}: {EACH_CLIENT}; without --data it shows its test part")
    if local:
        or_no_sites = ", or its clients are no sites, so that no model is that of a sample"
    return UserError(
        f"{cell.name}: seed {seed} was trained without keep_model{or_no_sites}; its numbers stay in tables until "
        f"`fedbench forget {words}`, then `fedbench run {words}` trains it again and keeps its predictions"
    )


def load_predictions(cell: Cell, store: Store, words: str) -> pd.DataFrame:
    """Return the predictions of all runs of a cell that finished, a row for each seed and sample.

    Columns: ``seed``; ``part``, test or validation; ``row`` of the user's file, or place among the prepared samples,
    counted from 0; ``group`` and ``site`` where the data have them; ``label``, the class as trained on; ``score``, the
    network's output, and its sigmoid ``probability``, or of several outputs ``score_0``, ``score_1``, ...
    ``words`` as for :func:`finished_runs`.

    Raises:
        UserError: a run is missing, damaged, or kept none; the message says what to do.
        ReadError: one cannot be read now.
    """
    tables = []
    for run, record in finished_runs(cell, store, words):
        table = read(store, run.key)
        if table is None:
            raise lacking(cell, record, PREDICTIONS, words)
        tables.append(table.assign(seed=run.seed))
    data = cell.runs[0].data
    groups = {} if data.sources else datasets.get(data.dataset).groups()
    return arranged(pd.concat(tables, ignore_index=True), groups)


def read(store: Store, key: str) -> pd.DataFrame | None:
    """Return the predictions of one run as they were kept; None where it kept none. Errors as of ``Store.table``."""
    content = store.table(key, PREDICTIONS)
    if content is None:
        return None
    return pd.read_csv(io.BytesIO(content), dtype={"site": str}, keep_default_na=False)


def arranged(predictions: pd.DataFrame, groups: dict[int, str] | None = None) -> pd.DataFrame:
    """Order the columns of predictions; add the group of each row, and the probability of a single score."""
    if groups:
        predictions = predictions.assign(group=predictions["row"].map(groups))
    if "score" in predictions:
        # one overflows where the probability is 0
        with np.errstate(over="ignore"):
            predictions = predictions.assign(probability=1 / (1 + np.exp(-predictions["score"])))
    known = [name for name in FIRST if name in predictions]
    return predictions[[*known, *predictions.columns.drop(known)]]


def score_columns(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Return scores [n, C] as columns: ``score`` of one, else ``score_0`` and so on."""
    if scores.shape[1] == 1:
        return {"score": scores[:, 0].astype(np.float64)}
    return {f"score_{label}": scores[:, label].astype(np.float64) for label in range(scores.shape[1])}
