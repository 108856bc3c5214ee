"""What a run keeps besides its numbers: the scores of its samples, and a model that scores others."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from fedbench import net as network
from fedbench import tasks
from fedbench.data import datasets, multi_source
from fedbench.data.clients import Arrays, ClientData
from fedbench.data.custom.encoding import Reading
from fedbench.data.labels import relabel
from fedbench.data.partition import load_partition
from fedbench.data.prepared import load_prepared
from fedbench.engine.execution import Outcome
from fedbench.engine.weights import start_from
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store import predictions
from fedbench.store.record import LARGEST, MODEL, PREDICTIONS, READING, Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.task import Model, Part
from fedbench.train import initial_weights

log = logging.getLogger(__name__)

PARTS = {"test": ("test", "test"), "val": ("validation", "train")}
"""What predictions call a part, and the prepared part that has its samples."""


class Keeper:
    """Knows which samples a run is measured on, from before it is trained: a user's file may change meanwhile."""

    def __init__(self, spec: RunSpec, data_dir: str, n_classes: int) -> None:
        self._spec = spec
        self._prepared = multi_source.load_sources(spec.data, data_dir, inputs=False)
        self._validation = load_partition(spec.data, spec.seed, data_dir).validation
        tested = spec.data.datasets if spec.data.tests == "all" else spec.data.datasets[:1]
        used = {"train": spec.data.datasets, "test": tested}
        self._rows = {
            part: np.concatenate([_rows(name, part, data_dir) for name in names])
            for part, names in used.items()
        }
        # who trains on several files has no single form that further samples could have
        reading = None if spec.data.sources else datasets.get(spec.data.dataset).reading()
        self._reading = reading and self._as_trained(reading, n_classes)

    def _as_trained(self, reading: Reading, n_classes: int) -> Reading:
        """Give labels the class that the run's rule makes of them."""
        data = self._spec.data
        numbers = np.array([*reading.classes.values()])
        trained = relabel(numbers, self._prepared.classes, data.labels, data.seed_of(self._spec.seed))
        classes = dict(zip(reading.classes, trained.tolist(), strict=True))
        return reading.model_copy(update={"classes": classes, "n_classes": n_classes})

    def files(self, outcome: Outcome) -> dict[str, bytes]:
        """Return the content of the files that a run keeps, by their names."""
        if outcome.status == "finished" and (lacks := self._lacks(outcome)):
            log.warning("seed %d keeps no %s", self._spec.seed, lacks)
        kept, train = dict[str, bytes](), self._spec.train
        if outcome.model is not None:
            kept[MODEL] = initial_weights.model_bytes(outcome.model)
        if outcome.predictions is not None:
            kept[PREDICTIONS] = self._table(outcome).to_csv(index=False, lineterminator="\n").encode()
        # a run that others start from keeps its last weights, whatever validation chooses
        if self._reading is not None and MODEL in kept and not (train.keep_model and train.select):
            kept[READING] = self._reading.model_dump_json().encode()
        for name in [name for name, content in kept.items() if len(content) > LARGEST]:
            log.warning(
                "%s of seed %d is larger than %d MB and is not kept", name, self._spec.seed, LARGEST >> 20
            )
            del kept[name]
        return kept

    def _lacks(self, outcome: Outcome) -> str:
        """Say what a run that ended does not keep, and why; empty where it keeps all that it can."""
        local = self._spec.train.reference == "local"
        if outcome.predictions is not None and (local or outcome.model is not None):
            return ""
        if local:
            return "predictions: its clients are no sites, so that no model is that of a sample"
        if outcome.predictions is None and outcome.model is not None:
            return "predictions: its task has no score for each sample"
        return "model: validation chose an evaluation from before keep_model; `fedbench forget` it to train it again"

    def _table(self, outcome: Outcome) -> pd.DataFrame:
        parts = []
        for part, (labels, scores) in (outcome.predictions or {}).items():
            word, source = PARTS[part]
            at = self._validation if part == "val" else np.arange(len(labels))
            site = self._prepared.site_train if part == "val" else self._prepared.site_test
            sites = {} if site is None else {"site": np.array(self._prepared.sites)[site[at]]}
            columns = {"part": word, "row": self._rows[source][at], **sites, "label": labels}
            table = pd.DataFrame(columns | predictions.score_columns(scores))
            parts.append(table.dropna(subset=[table.columns[-1]]))
        return pd.concat(parts, ignore_index=True)


def _rows(name: str, part: str, data_dir: str) -> np.ndarray:
    """Return the rows of a user's file that a prepared part was made of, else its places."""
    if (rows := datasets.get(name).rows()) is not None:
        return rows[part]
    return np.arange(len(getattr(load_prepared(name, data_dir, inputs=False), f"y_{part}")))


def score(
    cell: Cell, store: Store, file: Path, device: torch.device, images: Path | None, words: str
) -> pd.DataFrame:
    """Score the samples of a file by the models that the runs of a cell kept, a row for each seed and sample.

    Args:
        cell: whose runs were trained with ``keep_model``.
        store: where they are.
        file: a table as the one trained on; label, group and site may be missing.
        device: where scores are computed.
        images: the folder of the pictures that the table lists. Default: that of the dataset.
        words: as for :func:`~fedbench.store.predictions.finished_runs`.

    Raises:
        UserError: a run kept no model, or the file is not as the one trained on; the message says what to do.
    """
    tables = []
    known: tuple[Reading, tuple[np.ndarray, pd.DataFrame]] | None = None  # most often the same for all seeds
    for run, record in predictions.finished_runs(cell, store, words):
        reading, weights = _kept(cell, store, run, record, words)
        if known is None or known[0] != reading:
            known = reading, reading.read(file, images)
        inputs, samples = known[1]
        scores = _scores(run, reading.n_classes, weights, inputs, device)
        if scores is None:
            raise predictions.lacking(cell, record, PREDICTIONS, words)
        columns = samples.assign(seed=run.seed, part="new", **predictions.score_columns(scores))
        tables.append(predictions.arranged(columns))
    return pd.concat(tables, ignore_index=True)


def _kept(
    cell: Cell, store: Store, run: RunSpec, record: Record, words: str
) -> tuple[Reading, initial_weights.Weights]:
    model, reading = store.table(run.key, MODEL), store.table(run.key, READING)
    if model is None:
        raise predictions.lacking(cell, record, MODEL, words)
    if reading is None:
        raise UserError(
            f"{cell.name}: a model on {run.data.dataset} cannot score a file yet: it can where the dataset is a table "
            "of one's own, of numbers and words or of pictures; `fedbench predict` without --data shows its test part"
        )
    try:
        return Reading.model_validate_json(reading), initial_weights.weights_of(
            model, f"{MODEL} of run {run.key}"
        )
    except ValueError as error:
        raise UserError(f"run {store.path(run.key)}: {READING} is not as it was written ({error})") from None


def _scores(
    run: RunSpec, n_classes: int, weights: initial_weights.Weights, inputs: np.ndarray, device: torch.device
) -> np.ndarray | None:
    """Return the scores [n, C] of stored inputs [n, ...], computed as those of the test part are."""
    labels, nobody = np.zeros(len(inputs), np.int64), np.empty(0, np.int64)
    arrays = Arrays(inputs, labels, inputs, labels, [np.arange(1)], nobody, n_classes)
    data = ClientData(arrays, run.train.model_copy(update={"positives": None}), run.seed, device, "device")
    task, how = tasks.make_task(run.task), run.network
    net = network.build_network(how.name, data.sample, task.outputs(arrays), 0, how.options)
    start_from(net, weights, drop_head=False)
    buffers = net.initial_buffers().to(device) if net.n_buffers else None
    model = Model(net, net.initial().to(device), buffers, data)
    return task.scores(model, Part("new", torch.from_numpy(inputs).to(device), labels))
