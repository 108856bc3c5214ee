"""What is known of the data of a rule: counts of samples, positive classes, remarks of its preparation."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fedbench.data import datasets, multi_source
from fedbench.data.dataset import IMPUTED, SPLIT
from fedbench.data.labels import relabel
from fedbench.data.partition import load_partition, read_facts
from fedbench.data.prepared import read_summary
from fedbench.errors import UserError
from fedbench.spec import DataSpec


@dataclass(frozen=True)
class BinaryTask:
    """What a binary task is about.

    Attributes:
        positive: the original classes that are class 1.
        train: training samples of all clients together, after dropping.
        share: of the positive class in them.
        dropped: training samples that no client has and that are not held out for validation.
    """

    positive: tuple[str, ...]
    train: int
    share: float
    dropped: int


def binary_task(spec: DataSpec, seed: int, data_dir: str | Path) -> BinaryTask | None:
    """Return the facts about a binary task; None if it has more classes, or its partition is not on this machine."""
    try:
        sources = [read_summary(name, data_dir) for name in spec.datasets]
        facts = read_facts(spec, seed, data_dir)
    except UserError:
        return None
    train, names = facts["train"], sources[0]["classes"]
    if train["positive_ratio"] is None:
        return None
    label = relabel(np.arange(len(names)), names, spec.labels, spec.seed_of(seed))
    used = train["n"] + facts["validation"]["n"]
    if spec.validation != "own":  # then the official validation part is not used
        used += sum(source.get("official_validation", 0) for source in sources)
    return BinaryTask(
        positive=tuple(str(name) for name, of in zip(names, label, strict=True) if of == 1),
        train=train["n"],
        share=train["positive_ratio"],
        dropped=sum(source["train"]["n"] for source in sources) - used,
    )


def remarks(spec: DataSpec, seed: int, data_dir: str | Path) -> list[str]:
    """Return what was remarked, imputed, split or dealt unevenly as the data were made; nothing where they are not."""
    lines = list[str]()
    for name in spec.datasets:
        with contextlib.suppress(UserError):
            prepared = read_summary(name, data_dir)
            lines += prepared.get("remarks", [])
            lines += [note for note in prepared.get("notes", []) if note.startswith((IMPUTED, SPLIT))]
    if spec.partition.rule == "dirichlet":
        with contextlib.suppress(UserError):
            lines += _exhausted(read_facts(spec, seed, data_dir)["class_counts"])
    return lines


def _exhausted(counts: list[list[int]]) -> list[str]:
    """Say that `dirichlet`, whose shares lie around equal ones, gave a rare label to the first clients alone."""
    if len(counts[0]) != 2:
        return []
    lacking = [sum(not client[label] for client in counts) for label in (0, 1)]
    word, n = max(zip(("negative", "positive"), lacking, strict=True), key=lambda pair: pair[1])
    rule = "`dirichlet` draws shares around equal ones; `class_dirichlet` with `by: labels` deals each label"
    return [f"{n} of {len(counts)} clients have no {word} sample ({rule})"] if n else []


@dataclass(frozen=True)
class Counts:
    """How many samples a part of the data has; ``positive`` and ``negative`` are None unless the task is binary."""

    n: int
    positive: int | None = None
    negative: int | None = None

    def fact(self, name: str) -> float | None:
        """Return one of ``n_samples``, ``n_positive``, ``n_negative``, ``positive_ratio``, ``positive_percent``."""
        share = None if self.positive is None or not self.n else self.positive / self.n
        facts = {
            "n_samples": self.n,
            "n_positive": self.positive,
            "n_negative": self.negative,
            "positive_ratio": share,
            "positive_percent": None if share is None else 100 * share,
        }
        return facts[name]


def by_site(
    spec: DataSpec, seed: int, data_dir: str | Path, part: Literal["Training", "Test"] = "Test"
) -> dict[str, Counts]:
    """Count the samples of each site in a part by its name, and of all by an empty one; nothing of what is not here.

    Training samples are those that a client has.
    """
    try:
        prepared = multi_source.load_sources(spec, data_dir, inputs=False)
        partition = load_partition(spec, seed, data_dir)
    except UserError:
        return {}
    if spec.labels.rule == "original" and len(prepared.classes) != 2:
        return {}
    labels, sites = partition.y_test, prepared.site_test
    if part == "Training":
        labels = partition.y_train[partition.indices]
        sites = None if prepared.site_train is None else prepared.site_train[partition.indices]
    parts = {"": labels}
    if sites is not None:
        parts |= {site: labels[sites == i] for i, site in enumerate(prepared.sites)}
    return {site: Counts(len(y), int((y == 1).sum()), int((y == 0).sum())) for site, y in parts.items()}


def repeats(spec: DataSpec, data_dir: str | Path) -> bool:
    """Return whether a patient or the like has several training samples; False where it is not known here."""
    try:
        owners = multi_source.load_sources(spec, data_dir, inputs=False).group_train
        of_patients = datasets.get(spec.dataset).whole_groups
    except UserError:
        return False
    return of_patients and owners is not None and len(np.unique(owners)) < len(owners)


ALL = "all"
SPLITS = {"Training": "train", "Validation": "validation", "Test": "test"}
"""What tables call the parts of a partition; :data:`ALL` is the whole dataset, before anything is dropped."""


def split_counts(spec: DataSpec, seed: int, data_dir: str | Path) -> dict[str, Counts]:
    """Count the samples of each split of a data rule; splits are missing where it was not dealt yet.

    The whole dataset is counted from what was prepared, or else from its label files alone, where it can
    (:meth:`fedbench.data.dataset.Dataset.count_labels`); the parts from the partition.
    """
    counts = dict[str, Counts]()
    if (classes := _all_classes(spec.dataset, Path(data_dir))) is not None:
        n = sum(classes.values())
        counts[ALL] = Counts(n)
        if spec.labels.rule != "original":
            label = relabel(np.arange(len(classes)), [*classes], spec.labels, spec.seed_of(seed))
            positive = sum(itertools.compress(classes.values(), label == 1))
            counts[ALL] = Counts(n, positive, n - positive)
    try:
        summary = read_facts(spec, seed, data_dir)
    except UserError:
        return counts
    for split, part in SPLITS.items():
        of = summary[part]["class_counts"]
        both = (of["1"], of["0"]) if len(of) == 2 else (None, None)
        counts[split] = Counts(summary[part]["n"], *both)
    return counts


def _all_classes(dataset: str, data_dir: Path) -> dict[str, int] | None:
    """Count the samples of each class of a whole dataset, None where neither arrays nor labels are here."""
    with contextlib.suppress(UserError):
        prepared = read_summary(dataset, data_dir)
        parts = [prepared[part]["class_counts"] for part in ("train", "test")]
        return {name: sum(part[str(i)] for part in parts) for i, name in enumerate(prepared["classes"])}
    with contextlib.suppress(UserError):
        return datasets.get(dataset).count_labels(data_dir)
    return None
