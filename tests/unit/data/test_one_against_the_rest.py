"""One class against the rest: labels, removed and flipped positives, and when validation is held out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedbench.data.labels import flip, keep, relabel
from fedbench.data.partition import Partition, load_partition, make_partition, partition_path
from fedbench.data.prepared import load_prepared, prepare, prepared_path, write_prepared
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import DataSpec, ImbalanceSpec, LabelSpec

NAMES = ("no finding", "edema", "edema+mass", "massive", "mass")
DIGITS: dict[str, Any] = {
    "dataset": "digits",
    "labels": {"rule": "named", "positive": [3]},
    "imbalance": {"rule": "remove_positives", "share": 0.5},
    "clients": 4,
    "validation": 0.1,
    "validation_of": "all",
}


@pytest.fixture
def partition(digits: Path, tmp_path: Path) -> Callable[..., Partition]:
    """Apply a rule on digits; the argument ``seed`` is the run's."""
    shutil.copytree(digits / "prepared", tmp_path / "prepared")

    def make(seed: int = 0, **changed: Any) -> Partition:
        spec = DataSpec(**DIGITS | changed)
        make_partition(spec, seed, tmp_path)
        return load_partition(spec, seed, tmp_path)

    return make


@pytest.mark.parametrize(
    "positive, message",
    [
        (["mas"], "unknown positive class 'mas'. Did you mean 'mass'"),
        ([5], "unknown positive class '5'"),
        ([-1], "unknown positive class '-1'"),
        ([0, 1, 2, 3, 4], "lists every class"),
    ],
)
def test_unknown_or_all_classes_are_refused(positive: list[int | str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        relabel(np.arange(5), NAMES, LabelSpec(rule="named", positive=tuple(positive)))


@pytest.mark.parametrize(
    "positives, share, left",
    [(4500, 0.95, 225), (4495, 0.95, 224), (454, 0.5, 227), (10, 0, 10)],
)
def test_a_share_of_the_positives_is_removed(positives: int, share: float, left: int) -> None:
    """Exactly: 0.05 * 4500 in floats is above 225."""
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [9000, positives]))
    spec = ImbalanceSpec(rule="remove_positives", share=share)
    kept = keep(labels, spec, stream(0, "imbalance"))
    assert np.bincount(labels[kept]).tolist() == [9000, left] and (np.diff(kept) > 0).all()


@pytest.mark.parametrize("share, flipped", [(0, 0), (0.2, 55), (0.29, 79), (0.999, 274)])
def test_exactly_the_share_of_the_positives_is_flipped(share: float, flipped: int) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [1000, 275]))
    before = labels.copy()
    noisy = flip(labels, share, stream(0, "flip"))
    assert (labels == before).all()
    assert noisy.sum() == 275 - flipped and (noisy <= labels).all()


def test_flips_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="no positive is left"):
        flip(np.zeros(5, int), 0.2, stream(0, "flip"))
    with pytest.raises(UserError, match="needs binary labels"):
        flip(np.arange(5), 0.2, stream(0, "flip"))


def test_validation_is_held_out_before_the_removal(digits: Path, partition: Callable[..., Partition]) -> None:
    positive = int((load_prepared("digits", digits).y_train == 3).sum())
    held = round(0.1 * positive)
    before, after = partition().summary, partition(validation_of="kept").summary
    assert before["validation"]["class_counts"]["1"] == held
    assert before["train"]["class_counts"]["1"] == (positive - held) // 2
    assert after["validation"]["class_counts"]["1"] == round(0.1 * (positive // 2)) < held
    assert before["validation"]["class_counts"]["0"] == after["validation"]["class_counts"]["0"]
    with pytest.raises(UserError, match="digits comes without a validation part of its own"):
        partition(validation="own")


def test_flips_touch_the_clients_alone(digits: Path, partition: Callable[..., Partition]) -> None:
    classes = load_prepared("digits", digits)
    clean, noisy = (partition(labels={"rule": "named", "positive": [3], "flip": share}) for share in (0, 0.2))
    n = clean.summary["train"]["class_counts"]["1"]
    assert noisy.summary["train"]["class_counts"]["1"] == n - n // 5
    np.testing.assert_array_equal(noisy.validation, clean.validation)
    np.testing.assert_array_equal(noisy.y_train[noisy.validation], classes.y_train[noisy.validation] == 3)
    np.testing.assert_array_equal(noisy.y_test, classes.y_test == 3)
    np.testing.assert_array_equal(np.sort(noisy.indices), np.sort(clean.indices))


def test_a_seed_of_the_data_fixes_them_for_every_run(
    tmp_path: Path, partition: Callable[..., Partition]
) -> None:
    fixed = DataSpec(**DIGITS | {"draw": 7})
    paths = {partition_path(fixed, seed, tmp_path) for seed in range(3)}
    assert len(paths) == 1
    runs = [partition(seed, draw=7).indices for seed in range(3)]
    assert (runs[0] == runs[1]).all() and (runs[0] == runs[2]).all()
    np.testing.assert_array_equal(runs[0], partition(7).indices)  # what a run of seed 7 would draw
    assert set(runs[0]) != set(partition(1, draw=8).indices)


def test_an_official_validation_part_is_that_or_nothing(own_data: Callable[..., str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    prepare(own_data(x=rng.normal(size=(300, 2)), y=y), tmp_path)
    path, held = prepared_path("mine", tmp_path), rng.random(240) < 0.2
    read = load_prepared("mine", tmp_path)
    arrays = {part: getattr(read, part) for part in read.summary["arrays"]}
    write_prepared(path, arrays | {"held_train": held}, read.summary)

    def parts(validation: float | str) -> Partition:
        labels = {"rule": "named", "positive": [0]}
        spec = DataSpec(dataset="mine", labels=labels, clients=3, validation=validation)
        make_partition(spec, 0, tmp_path)
        return load_partition(spec, 0, tmp_path)

    assert parts("own").validation.tolist() == np.flatnonzero(held).tolist()
    for validation in ("own", 0.0, 0.1):
        result = parts(validation)
        left = np.setdiff1d(np.flatnonzero(~held), result.validation)
        np.testing.assert_array_equal(np.sort(result.indices), left)


@pytest.mark.parametrize(("sign", "lacking"), [(0, "positive"), (1, "negative")])
def test_a_part_of_one_class_is_named_before_training(
    own_data: Callable[..., str], tmp_path: Path, sign: int, lacking: str
) -> None:
    x = np.arange(180.0)[:, None]
    y, rare = np.arange(120) % 2, np.where(np.arange(120) % 30, sign, 1 - sign)
    own_data("tested", x=x[:120], y=y, x_test=x[120:], y_test=np.full(60, sign))
    own_data("held", x=x[:120], y=rare, x_test=x[120:], y_test=y[:60])
    for name in ("tested", "held"):
        prepare(name, tmp_path)
    lacks = f"part has no {lacking} sample: an AUC needs both"
    for labels in (
        LabelSpec(rule="named", positive=(1,)),
        LabelSpec(),
    ):  # of two classes, named or as they are
        with pytest.raises(UserError, match=f"tested: the test {lacks}"):
            make_partition(DataSpec(dataset="tested", clients=2, labels=labels), 0, tmp_path)
    make_partition(DataSpec(dataset="held", clients=2, validation=0.25), 0, tmp_path)
    with pytest.raises(
        UserError, match=rf"validation {lacks}; raise data\.validation"
    ):  # a tenth of four is none
        make_partition(DataSpec(dataset="held", clients=2, validation=0.1), 0, tmp_path)
