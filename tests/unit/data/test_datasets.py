"""Every dataset is read from small files in its official format."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedbench.data import datasets
from fedbench.data.datasets._medmnist import MedSet
from fedbench.errors import UserError

torchvision_sets = pytest.importorskip("torchvision.datasets")


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def mnist(monkeypatch):
    """The dataset with the checksums of small files, the files by name, and the arrays in them."""
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
    monkeypatch.setattr(torchvision_sets.MNIST, "resources", resources)
    unpacked = {name: md5(content) for name, content in files.items()}
    return dataclasses.replace(datasets.get("mnist"), unpacked=unpacked), files | zipped, arrays


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
    monkeypatch.setattr(torchvision_sets.MNIST, "mirrors", [f"{server.url}/gone/", f"{server.url}/mnist/"])
    server.files |= {f"/mnist/{name}": content for name, content in files.items()}
    assert dataset.status(tmp_path).state == "downloadable"
    assert dataset.prepare(dataset.fetch(tmp_path, None)).x_train.shape == (7, 1, 28, 28)
    assert all(path.endswith(".gz") for path, _ in server.requests)


class Marker:
    """Unpickling it leaves a file: proof that a pickle was opened."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def cifar(monkeypatch, tmp_path):
    """Small CIFAR-10 batches with their checksums told to torchvision; returns the files by name."""
    rng = np.random.default_rng(1)
    files = {
        f"data_batch_{k}": pickle.dumps(
            {"data": rng.integers(0, 256, (4, 3072), dtype=np.uint8), "labels": [k] * 4}
        )
        for k in range(1, 6)
    }
    files["test_batch"] = pickle.dumps(
        {"data": rng.integers(0, 256, (2, 3072), dtype=np.uint8), "labels": [0, 9]}
    )
    files["batches.meta"] = pickle.dumps({"label_names": list("abcdefghij")})
    known = torchvision_sets.CIFAR10
    sums = [[name, md5(content)] for name, content in files.items()]
    monkeypatch.setattr(known, "train_list", sums[:5])
    monkeypatch.setattr(known, "test_list", sums[5:6])
    monkeypatch.setattr(known, "meta", {"filename": "batches.meta", "key": "label_names", "md5": sums[6][1]})
    return files


def tar_of(files: dict[str, bytes], folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_cifar10_keeps_planes_rows_and_columns(cifar, tmp_path, packed, monkeypatch):
    if packed:
        archive = tar_of(cifar, "cifar-10-batches-py")
        monkeypatch.setattr(torchvision_sets.CIFAR10, "tgz_md5", md5(archive))
        put(tmp_path / "mirror" / "cifar-10-python.tar.gz", archive)
    else:
        for name, content in cifar.items():
            put(tmp_path / "mirror" / "cifar-10-batches-py" / name, content)
    dataset = datasets.get("cifar10")
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    planes = pickle.loads(cifar["data_batch_2"])["data"].reshape(4, 3, 32, 32)
    np.testing.assert_array_equal(read.x_train[4:8], planes)
    assert read.y_train.tolist() == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4
    assert read.y_test.tolist() == [0, 9]


def test_a_pickle_with_a_wrong_checksum_is_never_opened(cifar, tmp_path, server, monkeypatch):
    evil = pickle.dumps(Marker(str(tmp_path / "opened")))
    for name, content in cifar.items():
        put(tmp_path / "mirror" / "cifar-10-batches-py" / name, evil if name == "data_batch_3" else content)
    monkeypatch.setattr(torchvision_sets.CIFAR10, "url", f"{server.url}/gone")
    dataset = datasets.get("cifar10")
    with pytest.raises(UserError, match=r"data_batch_3: wrong checksum"):
        dataset.fetch(tmp_path, str(tmp_path / "mirror"))
    folder = dataset.raw_dir(tmp_path)
    put(folder / "cifar-10-batches-py" / "data_batch_3", evil)
    with pytest.raises(RuntimeError):  # nor when somebody puts it there by hand
        dataset.prepare(folder)
    assert (folder / "cifar-10-batches-py" / "data_batch_3.corrupt").read_bytes() == evil
    assert not (tmp_path / "opened").exists()


def test_stl10_is_transposed_and_needs_no_unlabelled_images(monkeypatch, tmp_path):
    rng = np.random.default_rng(2)
    picture = rng.integers(0, 256, (2, 3, 96, 96), dtype=np.uint8)
    files = {
        "train_X.bin": picture.transpose(
            0, 1, 3, 2
        ).tobytes(),  # the official files are stored column by column
        "train_y.bin": bytes([1, 10]),
        "test_X.bin": picture[:1].transpose(0, 1, 3, 2).tobytes(),
        "test_y.bin": bytes([3]),
    }
    known = torchvision_sets.STL10
    sums = [[name, md5(content)] for name, content in files.items()]
    monkeypatch.setattr(known, "train_list", [*sums[:2], known.train_list[2]])
    monkeypatch.setattr(known, "test_list", sums[2:])
    archive = tar_of(files | {"unlabeled_X.bin": b"many"}, "stl10_binary")
    monkeypatch.setattr(known, "tgz_md5", md5(archive))
    put(tmp_path / "mirror" / "stl10_binary.tar.gz", archive)
    dataset = datasets.get("stl10")
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    np.testing.assert_array_equal(read.x_train, picture)
    assert read.y_train.tolist() == [0, 9] and read.y_test.tolist() == [2]
    assert not (tmp_path / "raw" / "stl10" / "stl10_binary" / "unlabeled_X.bin").exists()


def jpeg(red: int, blue: int, size: tuple[int, int] = (40, 30)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, (red, 0, blue)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def pets():
    """Cats are red, dogs are blue, both darker with their number."""
    files = {f"cat.{n}.jpg": jpeg(250 - 20 * n, 0) for n in range(5)}
    files |= {f"dog.{n}.jpg": jpeg(0, 250 - 20 * n) for n in range(5)}
    return dataclasses.replace(datasets.get("catvsdog"), per_class=5, test_from=4), files


@pytest.mark.parametrize("layout", ["folder", "train.zip", "dogs-vs-cats.zip"])
@pytest.mark.parametrize("place", ["raw", "mirror"])
def test_cats_and_dogs(pets, tmp_path, layout, place):
    dataset, files = pets
    home = tmp_path / "raw" / "catvsdog" if place == "raw" else tmp_path / "mirror" / "catvsdog"
    inner = zip_of({f"train/{name}": content for name, content in files.items()})
    if layout == "folder":
        for name, content in files.items():
            put(home / "train" / name, content)
    else:
        put(home / layout, inner if layout == "train.zip" else zip_of({"train.zip": inner, "test1.zip": b""}))
    (tmp_path / "mirror").mkdir(exist_ok=True)
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    assert read.x_train.shape == (8, 3, 50, 50) and read.x_test.shape == (2, 3, 50, 50)
    assert read.y_train.tolist() == [0, 1] * 4 and read.y_test.tolist() == [0, 1]
    level = read.x_train.mean((2, 3)).round()
    np.testing.assert_allclose(level[::2, 0], [250, 230, 210, 190], atol=3)
    np.testing.assert_allclose(level[1::2, 2], [250, 230, 210, 190], atol=3)
    np.testing.assert_allclose(read.x_test.mean((2, 3))[:, [0, 2]], [[170, 0], [0, 170]], atol=3)


def test_pictures_keep_their_orientation(pets, tmp_path):
    dataset, files = pets
    picture = Image.new("RGB", (60, 30))
    picture.paste((255, 255, 255), (0, 0, 30, 30))  # the left half is white
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=95)
    put(tmp_path / "train.zip", zip_of(files | {"cat.0.jpg": buffer.getvalue()}))
    first = dataclasses.replace(dataset, shape=(3, 10, 20)).prepare(tmp_path).x_train[0]
    assert first.shape == (3, 10, 20)
    assert (first[:, :, :8] > 250).all() and (first[:, :, 12:] < 5).all()


def test_a_lost_or_broken_picture_is_named(pets, tmp_path):
    dataset, files = pets
    home = tmp_path / "raw" / "catvsdog"
    files["dog.2.jpg"] = files["dog.2.jpg"][:100]
    put(home / "train.zip", zip_of(files))
    with pytest.raises(UserError, match=r"train\.zip: dog\.2\.jpg is no readable picture"):
        dataset.prepare(home)
    del files["dog.2.jpg"]
    put(home / "train.zip", zip_of(files))
    with pytest.raises(UserError, match=r"dog\.2\.jpg is missing \(9 of 10\)"):
        dataset.prepare(home)


def test_sets_behind_an_account_say_what_to_fetch_and_where_to_put_it(tmp_path):
    for name, file in (("catvsdog", "train.zip"), ("melanoma", "jpeg-melanoma-256x256.zip")):
        dataset = datasets.get(name)
        status = dataset.status(tmp_path)
        assert status.state == "needs account"
        with pytest.raises(UserError) as error:
            dataset.fetch(tmp_path, None)
        for text in (status.detail, str(error.value)):
            assert "https://www.kaggle.com/" in text and file in text and str(tmp_path / "raw" / name) in text


@pytest.fixture
def lesions():
    """Forty pictures of twenty patients; number n is in fold n % 10, number 7 is a duplicate."""
    rows = ["image_name,patient_id,sex,target,tfrecord"]
    files = {}
    for n in range(40):
        rows.append(f"ISIC_{n:04d},IP_{n // 2},male,{int(n % 8 == 0)},{-1 if n == 7 else n % 10}")
        files[f"ISIC_{n:04d}.jpg"] = jpeg(6 * n, 0, (256, 256))
    return dataclasses.replace(datasets.get("melanoma"), shape=(3, 16, 16)), rows, files


def melanoma_zip(rows: list[str], files: dict[str, bytes]) -> bytes:
    pictures = {f"train/{name}": content for name, content in files.items()}
    tests = {f"test/ISIC_9{n}.jpg": b"" for n in range(3)}
    return zip_of({"train.csv": "\n".join(rows).encode(), **pictures, **tests})


@pytest.mark.parametrize("packed", [False, True])
def test_melanoma_tests_on_the_last_fifth_of_the_folds(lesions, tmp_path, packed):
    dataset, rows, files = lesions
    home = tmp_path / "mirror" / "melanoma"
    if packed:
        put(home / "jpeg-melanoma-256x256.zip", melanoma_zip(rows, files))
    else:
        put(home / "train.csv", "\n".join(rows).encode())
        for name, content in files.items():
            put(home / "train" / name, content)
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    test = [n for n in range(40) if n % 10 >= 8]
    train = [n for n in range(40) if n % 10 < 8 and n != 7]
    assert read.x_train.shape == (31, 3, 16, 16) and len(read.x_test) == 8
    np.testing.assert_allclose(read.x_test[:, 0].mean((1, 2)), [6 * n for n in test], atol=3)
    np.testing.assert_allclose(read.x_train[:, 0].mean((1, 2)), [6 * n for n in train], atol=3)
    assert read.y_train.tolist() == [int(n % 8 == 0) for n in train]
    assert read.y_test.tolist() == [int(n % 8 == 0) for n in test]
    assert len(set(zip(read.group_train, [n // 2 for n in train], strict=True))) == len(
        {n // 2 for n in train}
    )


def test_melanoma_without_folds_splits_by_patient_and_label(lesions, tmp_path):
    dataset, rows, files = lesions
    put(tmp_path / "train.csv", "\n".join(row.rpartition(",")[0] for row in rows).encode())
    for name, content in files.items():
        put(tmp_path / "train" / name, content)
    read = dataset.prepare(tmp_path)
    shade = (read.x_test[:, 0].mean((1, 2)) / 6).round().astype(int)
    assert len(shade) == 8 and read.y_test.sum() == 1
    patients = set(shade // 2)
    trained = set((read.x_train[:, 0].mean((1, 2)) / 6).round().astype(int) // 2)
    assert not patients & trained
    again = dataset.prepare(tmp_path)
    np.testing.assert_array_equal(again.x_test, read.x_test)


def test_melanoma_without_a_picture_or_a_column_says_which(lesions, tmp_path):
    dataset, rows, files = lesions
    del files["ISIC_0012.jpg"]
    put(tmp_path / "jpeg-melanoma-256x256.zip", melanoma_zip(rows, files))
    with pytest.raises(UserError, match=r"lacks 1 pictures of .*ISIC_0012\.jpg"):
        dataset.prepare(tmp_path)
    put(
        tmp_path / "jpeg-melanoma-256x256.zip",
        melanoma_zip([row.replace("target", "y") for row in rows], files),
    )
    with pytest.raises(UserError, match=r"train\.csv has no column target"):
        dataset.prepare(tmp_path)


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
        if name != "imagenet" and (
            dataset.classes or not (isinstance(dataset, MedSet) or name == "omniglot")
        ):  # named while preparing
            assert len(set(dataset.classes)) == len(dataset.classes) > 1
        assert dataset.licence and dataset.source
        assert dataset.shape or name == "insurance"  # whose files have more features in some years


def test_an_unknown_dataset_lists_the_known_ones():
    with pytest.raises(
        UserError, match=r"'fashion-mnist'\. Did you mean 'fashionmnist'\?.*catvsdog, chestmnist, .*cifar10"
    ):
        datasets.get("fashion-mnist")


def test_another_title_changes_neither_the_files_nor_their_reader(mnist, cifar, tmp_path, monkeypatch):
    _, files, arrays = mnist
    monkeypatch.chdir(tmp_path)
    for name in arrays:
        put(tmp_path / "raw" / "mnist" / "MNIST" / "raw" / name, files[name])
    for name, content in cifar.items():
        put(tmp_path / "raw" / "cifar10" / "cifar-10-batches-py" / name, content)
    for base in ("mnist", "cifar10", "stl10"):
        put(Path(f"config/datasets/my_{base}.yaml"), f"base: {base}\ntitle: Mine\n".encode())
        assert datasets.get(f"my_{base}").title == "Mine"
    for base, size in (("mnist", 7), ("cifar10", 20)):
        dataset = datasets.get(f"my_{base}")
        assert dataset.status(tmp_path).state == "raw present"
        assert len(dataset.prepare(dataset.raw_dir(tmp_path)).y_train) == size
    files_of = [[item.path for item in datasets.get(name).downloads()] for name in ("stl10", "my_stl10")]
    assert files_of[0] == files_of[1]


@pytest.mark.parametrize("flat", [False, True])
def test_imagenet_by_folders_and_with_kaggles_flat_validation_part(tmp_path, flat):
    def jpeg(value):
        stream = io.BytesIO()
        Image.fromarray(np.full((20, 30, 3), value, np.uint8)).save(stream, "JPEG", quality=100)
        return stream.getvalue()

    for place, name in enumerate(("n02", "n01", "n03")):
        for k in range(2):
            put(tmp_path / "train" / name / f"{name}_{k}.JPEG", jpeg(10 * place + k))
        where = "val" if flat else f"val/{name}"
        put(tmp_path / where / f"ILSVRC2012_val_0000000{place}.JPEG", jpeg(100 + place))
    if flat:
        rows = "".join(
            f"ILSVRC2012_val_0000000{i},{name} 1 2 3 4\n" for i, name in enumerate(("n02", "n01", "n03"))
        )
        put(tmp_path / "LOC_val_solution.csv", b"ImageId,PredictionString\n" + rows.encode())
    dataset = dataclasses.replace(datasets.get("imagenet"), shape=(3, 8, 8))
    assert dataset.present(tmp_path)
    arrays = dataset.prepare(tmp_path)
    assert arrays.classes == ("n01", "n02", "n03") and arrays.y_train.tolist() == [0, 0, 1, 1, 2, 2]
    means = arrays.x_test.mean((1, 2, 3)).round().tolist()
    assert dict(zip(arrays.y_test.tolist(), means, strict=True)) == {0: 101, 1: 100, 2: 102}
    if flat:
        put(
            tmp_path / "LOC_val_solution.csv",
            b"ImageId,PredictionString\nILSVRC2012_val_00000000,n02 1 2 3 4\n",
        )
        with pytest.raises(
            UserError, match=r"LOC_val_solution\.csv lacks 2 pictures of val, e\.g\. ILSVRC2012_val_"
        ):
            dataset.prepare(tmp_path)
    else:
        put(tmp_path / "val" / "n09" / "x.JPEG", jpeg(0))
        with pytest.raises(UserError, match="n09 is no class of the folder train"):
            dataset.prepare(tmp_path)


def test_imagenet_that_is_not_there_says_what_to_get(tmp_path):
    status = datasets.get("imagenet").status(tmp_path)
    assert status.state == "needs account" and "ILSVRC2012_img_train.tar" in status.detail
