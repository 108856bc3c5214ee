"""Every dataset is read from small files in its official format, or generated."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from raw_files import put, put_all, tar_of

from fedbench.data import datasets
from fedbench.errors import UserError

SETS = "torchvision.datasets"
"""Imported by tests, not when they are listed: that takes seconds."""


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def mnist(monkeypatch):
    """The dataset, called something else, with the checksums of small files, these by name, and their arrays."""
    pytest.importorskip("torchvision")
    rng = np.random.default_rng(0)
    arrays = {
        "train-images-idx3-ubyte": rng.integers(0, 256, (7, 28, 28), dtype=np.uint8),
        "train-labels-idx1-ubyte": np.arange(7, dtype=np.uint8),
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        "t10k-labels-idx1-ubyte": np.array([9, 8, 0], dtype=np.uint8),
    }
    files = {name: idx(array) for name, array in arrays.items()}
    zipped = {f"{name}.gz": gzip.compress(content) for name, content in files.items()}
    resources = [(name, md5(content)) for name, content in zipped.items()]
    monkeypatch.setattr(f"{SETS}.MNIST.resources", resources)
    unpacked = {name: md5(content) for name, content in files.items()}
    return dataclasses.replace(datasets.get("mnist"), unpacked=unpacked, title="Mine"), files | zipped, arrays


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist_from_a_mirror_folder(mnist, tmp_path, suffix):
    dataset, files, arrays = mnist
    for name in arrays:
        put(tmp_path / "mirror" / "MNIST" / "raw" / f"{name}{suffix}", files[f"{name}{suffix}"])
    assert dataset.status(tmp_path, str(tmp_path / "mirror")).state == "in mirror"
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    np.testing.assert_array_equal(read.x_train[:, 0], arrays["train-images-idx3-ubyte"])
    np.testing.assert_array_equal(read.x_test[:, 0], arrays["t10k-images-idx3-ubyte"])
    assert read.y_train.tolist() == list(range(7)) and read.y_test.tolist() == [9, 8, 0]
    assert dataset.status(tmp_path).state == "raw present"


def test_mnist_from_its_official_address(mnist, tmp_path, server, monkeypatch):
    dataset, files, _ = mnist
    monkeypatch.setattr(f"{SETS}.MNIST.mirrors", [f"{server.url}/gone/", f"{server.url}/mnist/"])
    server.files |= {f"/mnist/{name}": content for name, content in files.items()}
    assert dataset.status(tmp_path).state == "downloadable"
    assert dataset.prepare(dataset.fetch(tmp_path, None)).x_train.shape == (7, 1, 28, 28)
    assert all(path.endswith(".gz") for path in server.requests)


class Marker:
    """Unpickling it leaves a file: proof that a pickle was opened."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def cifar(monkeypatch):
    """Small CIFAR-10 batches with their checksums told to torchvision; returns the files by name."""
    pytest.importorskip("torchvision")
    rng = np.random.default_rng(1)
    labels = {f"data_batch_{k}": [k] * 4 for k in range(1, 6)} | {"test_batch": [0, 9]}
    files = {}
    for name, of in labels.items():
        data = rng.integers(0, 256, (len(of), 3072), dtype=np.uint8)
        files[name] = pickle.dumps({"data": data, "labels": of})
    files["batches.meta"] = pickle.dumps({"label_names": list("abcdefghij")})
    known = f"{SETS}.CIFAR10"
    sums = [[name, md5(content)] for name, content in files.items()]
    monkeypatch.setattr(f"{known}.train_list", sums[:5])
    monkeypatch.setattr(f"{known}.test_list", sums[5:6])
    meta = {"filename": "batches.meta", "key": "label_names", "md5": sums[6][1]}
    monkeypatch.setattr(f"{known}.meta", meta)
    return files


@pytest.mark.parametrize("packed", [False, True])
def test_cifar10_keeps_planes_rows_and_columns(cifar, tmp_path, packed, monkeypatch):
    if packed:
        archive = tar_of({f"cifar-10-batches-py/{name}": content for name, content in cifar.items()})
        monkeypatch.setattr(f"{SETS}.CIFAR10.tgz_md5", md5(archive))
        put(tmp_path / "mirror" / "cifar-10-python.tar.gz", archive)
    else:
        put_all(tmp_path / "mirror/cifar-10-batches-py", cifar)
    dataset = dataclasses.replace(datasets.get("cifar10"), title="Mine")
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    planes = pickle.loads(cifar["data_batch_2"])["data"].reshape(4, 3, 32, 32)
    np.testing.assert_array_equal(read.x_train[4:8], planes)
    assert read.y_train.tolist() == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4
    assert read.y_test.tolist() == [0, 9]


def test_a_pickle_with_a_wrong_checksum_is_never_opened(cifar, tmp_path, server, monkeypatch):
    evil = pickle.dumps(Marker(str(tmp_path / "opened")))
    put_all(tmp_path / "mirror/cifar-10-batches-py", cifar | {"data_batch_3": evil})
    monkeypatch.setattr(f"{SETS}.CIFAR10.url", f"{server.url}/gone")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    dataset = datasets.get("cifar10")
    with pytest.raises(UserError, match=r"data_batch_3: .*hash"):
        dataset.fetch(tmp_path, str(tmp_path / "mirror"))
    folder = dataset.raw_dir(tmp_path)
    put(folder / "cifar-10-batches-py" / "data_batch_3", evil)
    with pytest.raises(RuntimeError):  # nor when somebody puts it there by hand
        dataset.prepare(folder)
    assert not (tmp_path / "opened").exists()


def test_stl10_is_transposed_and_needs_no_unlabelled_images(monkeypatch, tmp_path):
    rng = np.random.default_rng(2)
    picture = rng.integers(0, 256, (2, 3, 96, 96), dtype=np.uint8)
    files = {
        # the official files are stored column by column
        "train_X.bin": picture.transpose(0, 1, 3, 2).tobytes(),
        "train_y.bin": bytes([1, 10]),
        "test_X.bin": picture[:1].transpose(0, 1, 3, 2).tobytes(),
        "test_y.bin": bytes([3]),
    }
    STL10 = pytest.importorskip("torchvision.datasets").STL10
    sums = [[name, md5(content)] for name, content in files.items()]
    monkeypatch.setattr(STL10, "train_list", [*sums[:2], STL10.train_list[2]])
    monkeypatch.setattr(STL10, "test_list", sums[2:])
    inside = files | {"unlabeled_X.bin": b"many"}
    archive = tar_of({f"stl10_binary/{name}": content for name, content in inside.items()})
    monkeypatch.setattr(STL10, "tgz_md5", md5(archive))
    put(tmp_path / "mirror" / "stl10_binary.tar.gz", archive)
    dataset = datasets.get("stl10")
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    np.testing.assert_array_equal(read.x_train, picture)
    assert read.y_train.tolist() == [0, 9] and read.y_test.tolist() == [2]
    assert not (tmp_path / "raw" / "stl10" / "stl10_binary" / "unlabeled_X.bin").exists()


ACCOUNT = [name for name in datasets.names() if datasets.get(name).account]


@pytest.mark.parametrize("name", ACCOUNT)
def test_a_set_behind_an_account_says_what_to_fetch_and_where_to_put_it(tmp_path, name):
    dataset = datasets.get(name)
    status = dataset.status(tmp_path)
    assert status.state == "needs account"
    with pytest.raises(UserError) as error:
        dataset.fetch(tmp_path, None)
    for text in (status.detail, str(error.value)):
        assert "https://" in text and str(dataset.raw_dir(tmp_path)) in text


def test_digits_have_a_stratified_test_part_and_every_sample_once():
    from sklearn.datasets import load_digits

    dataset = datasets.get("digits")
    read = dataset.prepare(Path("unused"))
    counts = np.bincount(read.y_train) + np.bincount(read.y_test)
    np.testing.assert_array_equal(np.bincount(read.y_test), (0.2 * counts + 0.5).astype(int))
    both = np.concatenate([read.x_train, read.x_test]).reshape(-1, 64) * 16
    assert sorted(map(tuple, both)) == sorted(map(tuple, load_digits().data))
    assert read.x_train.min() == 0 and read.x_train.max() == 1 and read.x_train.dtype == np.float32


def test_facts_agree_with_each_other():
    for name in datasets.names():
        dataset = datasets.get(name)
        assert dataset.name == name
        if dataset.classes:  # others are named while preparing
            assert len(set(dataset.classes)) == len(dataset.classes) > 1
        assert dataset.licence and dataset.source
        assert dataset.shape or name == "insurance"  # whose files have more features in some years
        known = {field.name for field in dataclasses.fields(dataset)} | {"base", "class"}
        assert {*datasets._catalog().get(name, ())} <= known


def test_ilr_is_labelled_by_a_teacher_without_intercept() -> None:
    small = dataclasses.replace(datasets.get("ilr"), train=4000, test=2000)
    arrays = small.prepare(Path())
    assert arrays.x_train.shape == (4000, 10) and abs(arrays.y_train.mean() - 0.5) < 0.03
    teacher, *_ = np.linalg.lstsq(arrays.x_train, 2.0 * arrays.y_train - 1, rcond=None)
    assert ((arrays.x_test @ teacher > 0) == arrays.y_test).mean() > 0.98
    assert arrays.x_train.std() == pytest.approx(1, abs=0.02)


def test_sinusoids_give_each_amplitude_a_group() -> None:
    dataset = datasets.get("sinusoids")
    arrays = dataset.prepare(Path())
    assert arrays.group_train is not None
    assert len(dataset.classes) == 40 and np.array_equal(np.bincount(arrays.y_train), np.full(40, 500))
    assert np.array_equal(arrays.group_train, arrays.y_train // 5)
    assert -5 <= arrays.x_train.min() < -4.9 and 4.9 < arrays.x_train.max() <= 5


def test_shifted_clients_have_classes_apart_and_shares_of_their_own() -> None:
    arrays = datasets.get("shifted").prepare(Path())
    assert arrays.group_train is not None and np.array_equal(arrays.x_train, arrays.x_test)
    for client in range(4):
        own_data = arrays.group_train == client
        x, y = arrays.x_train[own_data], arrays.y_train[own_data]
        assert len(y) == 250 and y.mean() == pytest.approx(0.2 + 0.2 * client)
        apart = x[y == 1].mean(0) - x[y == 0].mean(0)
        expected = np.eye(5)[client] + np.eye(5)[client + 1]
        assert np.abs(apart - expected).max() < 0.5 and set(np.argsort(apart)[-2:]) == {client, client + 1}
