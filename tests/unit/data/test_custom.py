from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import load_prepared, prepare
from fedbench.spec import DataSpec


def load(name):
    prepare(name, "data")
    return load_prepared(name, "data")


def test_an_npz_without_a_test_part_is_split_by_class(own_data):
    y = np.repeat([0, 1], [30, 10])
    x = np.arange(40, dtype=float)[:, None]
    read = load(own_data(x=x, y=y, extra="test_share: 0.1\n"))
    assert np.bincount(read.y_test).tolist() == [3, 1]
    assert sorted(np.concatenate([read.x_train, read.x_test])[:, 0]) == list(range(40))
    assert ((read.x_train[:, 0] >= 30) == (read.y_train == 1)).all()


def test_groups_become_whole_where_the_file_has_a_test_part(own_data):
    x, y, group = np.arange(80.0)[:, None], np.tile([0, 1], 40), np.repeat(np.arange(20), 4)
    arrays = {"x": x, "y": y, "group": group, "x_test": x, "y_test": y}
    spec = DataSpec(dataset="mine", clients=2, validation=0.2)
    shared = []
    for text in ("", "whole_groups: true\n"):
        load(own_data(**arrays, extra=text))
        make_partition(spec, 0, "data")  # the arrays are the same both times, the partition must not be
        partition = load_partition(spec, 0, "data")
        shared.append(set(group[partition.indices]) & set(group[partition.validation]))
    assert shared[0] and not shared[1]


def test_a_key_follows_what_is_prepared_and_not_what_it_is_called(own_data):
    arrays = {"x": np.zeros((20, 1)), "y": np.repeat([0, 1], 10), "group": np.arange(20)}
    dataset = datasets.get(own_data(**arrays))
    content, definition = dataset.content(), dataset.definition()
    own_data(**arrays, extra="whole_groups: false\ntitle: Another\nsource: elsewhere\n")
    assert datasets.get("mine").content() == content
    own_data(**arrays, extra="whole_groups: true\n")
    assert datasets.get("mine").content() != content and datasets.get("mine").definition() != definition
    own_data(**arrays | {"x": np.ones((20, 1))})
    assert datasets.get("mine").content() != content


def test_changing_the_data_prepares_again(own_data):
    x, y = np.zeros((20, 1)), np.repeat([0, 1], 10)
    assert load(own_data(x=x, y=y)).x_train.sum() == 0
    assert load(own_data(x=x + 1, y=y)).x_train.sum() == 16
    assert len(load(own_data(x=x, y=y, extra="test_share: 0.5\n")).y_test) == 10


def test_a_base_changes_the_size_of_pictures_and_shares_the_raw_files(own_folder, tmp_path):
    text = "base: melanoma\ntitle: Melanoma 64\noptions: {shape: [3, 64, 64]}\n"
    (own_folder / "melanoma64.yaml").write_text(text)
    dataset, base = (datasets.get(name) for name in ("melanoma64", "melanoma"))
    assert dataset.shape == (3, 64, 64) and dataset.title == "Melanoma 64" and dataset.whole_groups
    assert dataset.raw_dir(tmp_path) == base.raw_dir(tmp_path) and dataset.definition() != base.definition()
    assert "melanoma64" in datasets.names()


PICTURES = np.random.default_rng(0).integers(0, 256, size=(40, 5, 6, 3)).astype(np.uint8)
CLASSES = np.arange(40) % 2


@pytest.mark.parametrize(
    ("train", "test"), [("{}", "{}_test"), ("{}_train", "{}_test"), ("train_{}", "test_{}")]
)
def test_pictures_with_channels_last_under_names_that_others_use(own_data, train, test):
    """MedMNIST's labels are [n, 1]; Keras' numbers may be int64."""
    x, y = ("images", "labels") if train == "train_{}" else ("x", "y")
    arrays = {train.format(x): PICTURES.astype(np.int64), train.format(y): CLASSES[:, None]}
    arrays |= {test.format(x): PICTURES[:9], test.format(y): CLASSES[:9]}
    read = load(own_data(**arrays, **({"group": CLASSES + 5} if train == "{}" else {})))
    assert read.x_train.dtype == np.uint8 and read.x_train.shape == (40, 3, 5, 6)
    np.testing.assert_array_equal(read.x_train[7, 2], PICTURES[7, :, :, 2])
    assert read.y_train.tolist() == CLASSES.tolist() and len(read.x_test) == 9 and read.classes == ("0", "1")
    assert train != "{}" or read.group_train.tolist() == (CLASSES + 5).tolist()


def test_a_layout_that_is_said_decides(own_data):
    assert load(own_data(x=PICTURES[..., 0], y=CLASSES)).x_train.shape[1:] == (1, 5, 6)
    square = PICTURES[:, :, :3, :]  # [40, 5, 3, 3]: the last axis is channels, unless it is said otherwise
    assert load(own_data(x=square, y=CLASSES)).x_train.shape[1:] == (3, 5, 3)
    assert load(own_data(x=square, y=CLASSES, extra="layout: NCHW\n")).x_train.shape[1:] == (5, 3, 3)


def test_a_validation_part_of_the_file_is_the_official_one(own_data):
    arrays = {f"{part}_images": PICTURES[:n] for part, n in (("train", 40), ("val", 10), ("test", 6))}
    arrays |= {name.replace("images", "labels"): CLASSES[: len(x)] for name, x in arrays.items()}
    read = load(own_data(**arrays))
    assert len(read.x_train) == 50 and len(read.x_test) == 6
    assert read.held_train.tolist() == [False] * 40 + [True] * 10


def test_the_record_names_the_file_and_the_status_follows_it(own_data, tmp_path):
    name = own_data(x=np.zeros((20, 1)), y=np.repeat([0, 1], 10))
    assert datasets.get(name).status(Path("data")).state == "raw present"
    assert list(load(name).summary["files"]) == ["mine.npz"]
    assert datasets.get(name).status(Path("data")).state == "prepared"
    (tmp_path / "mine.npz").unlink()
    status = datasets.get(name).status(Path("elsewhere"))
    assert status.state == "unavailable" and "mine.npz does not exist" in status.detail
