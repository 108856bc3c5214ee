"""Facts about the datasets as a paper's table of data prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fedbench.data.files import read_json
from fedbench.data.partition import partition_path
from fedbench.data.prepared import read_summary
from fedbench.errors import UserError
from fedbench.specs import DataSpec


@dataclass(frozen=True)
class DataRow:
    """One row: a dataset as a setting trains on it. Numbers are None where ``missing`` says why.

    Attributes:
        dataset: the label that the paper prints.
        train: training samples of all clients together, after dropping.
        positive, negative: how many of them are of class 1 and 0; None unless the task is binary.
        ratio: positive / train.
        validation, test: samples held out, and of the test part.
        classes: original classes.
        shape: of one sample, e.g. ``(3, 32, 32)``.
        clients: how many share the training samples.
        missing: why there are no numbers; empty if there are.
    """

    dataset: str
    train: int | None = None
    positive: int | None = None
    negative: int | None = None
    ratio: float | None = None
    validation: int | None = None
    test: int | None = None
    classes: int | None = None
    shape: tuple[int, ...] | None = None
    clients: int | None = None
    missing: str = ""


def data_rows(entries: Iterable[tuple[str, DataSpec, int]], data_dir: str | Path) -> list[DataRow]:
    """Collect the facts of (printed label, data rule, seed) entries, in order, from the summaries on disk.

    A dataset that is not prepared or partitioned keeps its row, with the reason.
    """
    return [_row(label, spec, seed, data_dir) for label, spec, seed in entries]


def _row(label: str, spec: DataSpec, seed: int, data_dir: str | Path) -> DataRow:
    path = partition_path(spec, seed, data_dir).with_suffix(".json")
    try:
        prepared = read_summary(spec.dataset, data_dir)
        found = read_json(path, "Run the workflow again.")
    except UserError as error:
        return DataRow(label, clients=spec.clients, missing=str(error))
    train = found["train"]
    binary = train["positive_ratio"] is not None
    return DataRow(
        label,
        train=train["n"],
        positive=train["class_counts"]["1"] if binary else None,
        negative=train["class_counts"]["0"] if binary else None,
        ratio=train["positive_ratio"],
        validation=found["validation"]["n"],
        test=found["test"]["n"],
        classes=len(prepared["classes"]),
        shape=tuple(prepared["shape"]),
        clients=found["n_clients"],
    )
