"""Whole groups dealt to clients; the generated datasets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from fedbench.data.datasets import get
from fedbench.data.partitions import Pool
from fedbench.data.partitions.groups import partition
from fedbench.errors import UserError
from fedbench.spec import PartitionSpec

RULE = PartitionSpec(rule="groups")


def test_groups_are_dealt_whole_and_evenly() -> None:
    group = np.random.default_rng(0).integers(0, 23, 500)
    pool = Pool(np.zeros(500, int), np.arange(500), group)
    deal = partition(pool, RULE, 4, np.random.default_rng(1))
    owned = [set(group[own].tolist()) for own in deal.clients]
    assert sorted(np.concatenate(deal.clients)) == list(range(500))
    assert sorted(map(len, owned)) == [5, 6, 6, 6] and len(set().union(*owned)) == 23
    assert deal.facts == {"groups": [len(names) for names in owned]}
    other = partition(pool, RULE, 4, np.random.default_rng(2))
    assert not np.array_equal(deal.clients[0], other.clients[0])


def test_without_groups_classes_are_dealt() -> None:
    classes = np.repeat(np.arange(6), 3)
    deal = partition(Pool(classes, classes), RULE, 3, np.random.default_rng(0))
    assert all(len(set(classes[own].tolist())) == 2 and len(own) == 6 for own in deal.clients)
    with pytest.raises(UserError, match="6 groups are too few for 7 clients"):
        partition(Pool(classes, classes), RULE, 7, np.random.default_rng(0))


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
