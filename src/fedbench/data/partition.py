"""Partitions on disk: which client has which training samples, and the labels they are trained on."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedbench import registry, sealed_json
from fedbench.data import datasets, multi_source, partitions
from fedbench.data.files import intact, read_json, read_npz, write_npz
from fedbench.data.labels import flip, hold_out, keep, relabel
from fedbench.data.partitions import Deal, Pool
from fedbench.data.prepared import Prepared, count
from fedbench.errors import DiskError, UserError
from fedbench.random import stream
from fedbench.spec import DataSpec

log = logging.getLogger(__name__)

VERSION = 2
"""Raised when the same data and seed are dealt otherwise than before: partitions are made again."""
_CURE = "Make it with data_prep/partition.py, or by running the workflow again."


@dataclass(frozen=True)
class Partition:
    """A data rule applied with one seed.

    Attributes:
        indices: ``[m]`` int64 positions in ``x_train``: client 0's samples, ascending, then client 1's, ...
        offsets: ``[N + 1]`` int64; client k has ``indices[offsets[k]:offsets[k + 1]]``.
        y_train: ``[n]`` int64 labels as trained on; -1 for samples that are not used.
        y_test: ``[n_test]`` int64 labels of the test part.
        validation: ``[v]`` int64 positions in ``x_train``, ascending, that no client has; may be empty.
        summary: the JSON beside the arrays.
    """

    indices: np.ndarray
    offsets: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    validation: np.ndarray
    summary: dict[str, Any]

    @property
    def n_clients(self) -> int:
        return len(self.offsets) - 1

    def client(self, k: int) -> np.ndarray:
        """Return the positions in ``x_train`` of client ``k``'s samples, ascending."""
        return self.indices[self.offsets[k] : self.offsets[k + 1]]


def partition_path(spec: DataSpec, seed: int, data_dir: str | Path) -> Path:
    return Path(data_dir) / "partitions" / spec.dataset / f"{spec.partition_key(seed)}.npz"


def make_partition(spec: DataSpec, seed: int, data_dir: str | Path) -> Path:
    """Apply a data rule to prepared arrays and write the partition, unless it is there; return its path.

    In this order: labels, imbalance, validation (with ``validation_of: all`` before imbalance), flips, clients. Each
    draws from its own stream, so two rules that differ in the partition alone drop the same samples. The bytes
    depend on the rule, the seed, the prepared arrays and whether the dataset keeps groups whole, alone.

    Raises:
        UserError: the dataset is not prepared, or the rule does not fit it.
    """
    path = partition_path(spec, seed, data_dir)
    whole_groups = (
        isinstance(spec.validation, float)
        and spec.validation > 0
        and any(datasets.get(name).whole_groups for name in spec.datasets)
    )
    if _current(spec, seed, data_dir, whole_groups):
        return path
    prepared = multi_source.load_sources(spec, data_dir, inputs=False)
    arrays, deal = _apply(spec, spec.seed_of(seed), prepared, whole_groups)
    made = {"whole_groups": whole_groups, "sha256": write_npz(path, arrays)}
    summary = _summary(spec, seed, prepared, arrays, deal) | made
    sealed_json.write(path.with_suffix(".json"), summary)  # last: it vouches for the arrays
    return path


def load_partition(spec: DataSpec, seed: int, data_dir: str | Path) -> Partition:
    """Read the partition of a data rule and seed.

    Raises:
        UserError: it was not made, or a file is damaged; the message names the file and the cure.
    """
    path, summary = partition_path(spec, seed, data_dir), read_facts(spec, seed, data_dir)
    if path.is_file() and not intact(path, summary["sha256"]):
        raise UserError(f"{path}: it is not what {path.with_suffix('.json').name} was written for. {_CURE}")
    return Partition(**read_npz(path, _CURE), summary=summary)


def read_facts(spec: DataSpec, seed: int, data_dir: str | Path) -> dict[str, Any]:
    """Read the JSON beside the partition of a data rule and seed; errors as in :func:`load_partition`."""
    return read_json(partition_path(spec, seed, data_dir).with_suffix(".json"), _CURE)


def split(pool: Pool, spec: DataSpec, rng: np.random.Generator) -> Deal:
    """Deal a pool by the rule that ``spec.partition`` names, to ``partition.of`` clients, and keep ``spec.clients``.

    Raises:
        UserError: a client would have no sample, or the rule lacks a parameter.
    """
    if spec.labels.rule != "original":
        _check_both(spec, "training", pool.labels)
    rule = registry.find(partitions, "partition rule", spec.partition.rule, "partition")
    n_clients = spec.partition.of or spec.clients
    if len(pool) < n_clients:
        raise UserError(
            f"{spec.dataset}: {len(pool)} training samples are too few for {n_clients} clients: "
            f"client {len(pool)} would have none. Use fewer clients or drop less."
        )
    dealt: Deal = rule(pool, spec.partition, n_clients, rng)
    deal = replace(dealt, clients=dealt.clients[: spec.clients])
    for client, samples in enumerate(deal.clients):
        if not len(samples):
            raise UserError(
                f"{spec.dataset}: partition rule {spec.partition.rule!r} leaves client {client} empty."
            )
    return deal


def _check_both(spec: DataSpec, part: str, labels: np.ndarray, cure: str = "") -> None:
    """Raise UserError unless a part has samples of both signs, whose AUC is undefined else."""
    if len(np.unique(labels)) < 2:
        lacking = "negative" if len(labels) and labels[0] else "positive"
        raise UserError(f"{spec.dataset}: the {part} part has no {lacking} sample: an AUC needs both{cure}.")


def _apply(
    spec: DataSpec, seed: int, prepared: Prepared, whole_groups: bool
) -> tuple[dict[str, np.ndarray], Deal]:
    """Return the arrays of a partition, its validation part of whole groups or not, and how it was dealt."""
    names = prepared.classes
    labels = relabel(prepared.y_train, names, spec.labels, seed)
    validation, pool = _parts(labels, spec, seed, prepared, whole_groups)
    labels[pool] = flip(labels[pool], spec.labels.flip, stream(seed, "flip"))
    groups = prepared.group_train
    left, sites = (None if of is None else of[pool] for of in (groups, prepared.site_train))
    deal = split(Pool(labels[pool], prepared.y_train[pool], left, sites), spec, stream(seed, "partition"))
    clients = [pool[np.sort(samples)] for samples in deal.clients]
    indices = np.concatenate(clients)
    used = np.zeros(len(labels), dtype=bool)
    used[indices] = used[validation] = True
    arrays = {
        "indices": indices,
        "offsets": np.cumsum([0, *map(len, clients)]),
        "y_train": np.where(used, labels, -1),
        "y_test": relabel(prepared.y_test, names, spec.labels, seed),
        "validation": validation,
    }
    if spec.labels.rule != "original" or len(names) == 2:
        _check_both(spec, "test", arrays["y_test"])
        _check_both(spec, "training", labels[indices])  # a rule may deal to more clients than there are
        if len(validation):
            _check_both(spec, "validation", labels[validation], "; raise data.validation")
    return {name: array.astype(np.int64) for name, array in arrays.items()}, deal


def _parts(
    labels: np.ndarray, spec: DataSpec, seed: int, prepared: Prepared, whole_groups: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the validation part, of whole groups or not, and of what is dealt to clients.

    An official validation part of the dataset is that of ``validation: own`` and is not used otherwise.
    """
    official, groups = prepared.held_train, prepared.group_train
    if whole_groups and groups is None:
        raise UserError(
            f"{spec.dataset} has whole_groups, but was prepared without groups: prepare it again with --force."
        )

    def kept(pool: np.ndarray) -> np.ndarray:
        rng = stream(seed, "imbalance")
        positions: np.ndarray = pool[keep(labels[pool], spec.imbalance, rng, prepared.y_train[pool])]
        return positions

    pool = np.arange(len(labels)) if official is None else np.flatnonzero(~official)
    if isinstance(spec.validation, str):
        if official is None:
            raise UserError(
                f"{spec.dataset} comes without a validation part of its own: set data.validation to a share."
            )
        return np.flatnonzero(official), kept(pool)
    if spec.validation_of == "kept":
        pool = kept(pool)
    # where each class lies in one group, whole groups are drawn whatever their class
    alike = whole_groups and datasets.get(spec.dataset).disjoint_classes
    stratify = np.zeros_like(pool) if alike else labels[pool]
    within = groups[pool] if whole_groups and groups is not None else None
    try:
        held = hold_out(stratify, spec.validation, stream(seed, "validation"), within)
    except UserError as error:
        raise UserError(f"{spec.dataset}: validation: {error}") from None
    validation, pool = pool[held], np.delete(pool, held)
    return validation, pool if spec.validation_of == "kept" else kept(pool)


def _summary(
    spec: DataSpec, seed: int, prepared: Prepared, arrays: dict[str, np.ndarray], deal: Deal
) -> dict[str, Any]:
    binary = spec.labels.rule != "original"
    n_labels = 2 if binary else len(prepared.classes)
    y, offsets = arrays["y_train"], arrays["offsets"]
    clients = np.split(y[arrays["indices"]], offsets[1:-1])

    def part(labels: np.ndarray) -> dict[str, Any]:
        return {"n": len(labels), "class_counts": count(labels, n_labels)}

    train = part(y[arrays["indices"]])
    return {
        "version": VERSION,
        "key": spec.partition_key(seed),
        "dataset": spec.dataset,
        "seed": spec.seed_of(seed),
        "rule": spec.model_dump(mode="json"),
        "prepared_sha256": prepared.summary["sha256"],
        "n_clients": spec.clients,
        "sizes": np.diff(offsets).tolist(),
        "class_counts": [np.bincount(labels, minlength=n_labels).tolist() for labels in clients],
        "train": {
            **train,
            "positive_ratio": train["class_counts"]["1"] / train["n"] if n_labels == 2 else None,
        },
        "validation": part(y[arrays["validation"]]),
        "test": part(arrays["y_test"]),
        "repairs": list(deal.remarks),
        **deal.facts,
    }


def _current(spec: DataSpec, seed: int, data_dir: str | Path, whole_groups: bool) -> bool:
    """Say whether an undamaged partition is there that was made in this way from the arrays as they are now."""
    try:
        summary = load_partition(spec, seed, data_dir).summary
        same = summary["whole_groups"] == whole_groups and summary.get("version") == VERSION
        return bool(same and summary["prepared_sha256"] == multi_source.checksum(spec, data_dir))
    except DiskError:
        raise
    except UserError:
        if (path := partition_path(spec, seed, data_dir)).exists():
            log.warning("%s is not what was written: it is made again", path)
        return False
