"""Whole groups dealt to clients; the generated datasets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from fedbench.data.datasets import get


def test_ilr_is_labelled_by_a_teacher_without_intercept() -> None:
    small = dataclasses.replace(get("ilr"), train=4000, test=2000)
    arrays = small.prepare(Path())
    assert arrays.x_train.shape == (4000, 10) and abs(arrays.y_train.mean() - 0.5) < 0.03
    teacher, *_ = np.linalg.lstsq(arrays.x_train, 2.0 * arrays.y_train - 1, rcond=None)
    assert ((arrays.x_test @ teacher > 0) == arrays.y_test).mean() > 0.98
    assert arrays.x_train.std() == pytest.approx(1, abs=0.02)


def test_sinusoids_give_each_amplitude_a_group() -> None:
    dataset = get("sinusoids")
    arrays = dataset.prepare(Path())
    assert arrays.group_train is not None
    assert len(dataset.classes) == 40 and np.array_equal(np.bincount(arrays.y_train), np.full(40, 500))
    assert np.array_equal(arrays.group_train, arrays.y_train // 5)
    assert -5 <= arrays.x_train.min() < -4.9 and 4.9 < arrays.x_train.max() <= 5


def test_shifted_clients_have_classes_apart_and_shares_of_their_own() -> None:
    arrays = get("shifted").prepare(Path())
    assert arrays.group_train is not None and np.array_equal(arrays.x_train, arrays.x_test)
    for client in range(4):
        own_data = arrays.group_train == client
        x, y = arrays.x_train[own_data], arrays.y_train[own_data]
        assert len(y) == 250 and y.mean() == pytest.approx(0.2 + 0.2 * client)
        apart = x[y == 1].mean(0) - x[y == 0].mean(0)
        expected = np.eye(5)[client] + np.eye(5)[client + 1]
        assert np.abs(apart - expected).max() < 0.5 and set(np.argsort(apart)[-2:]) == {client, client + 1}
