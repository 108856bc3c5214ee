"""Datasets of picture files: cats and dogs, melanoma, ImageNet."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from raw_files import encoded, put, put_all, zip_of

from fedbench.data import datasets
from fedbench.errors import UserError


def jpeg(red: int, blue: int, size: tuple[int, int] = (40, 30)) -> bytes:
    return encoded(np.full((*size[::-1], 3), (red, 0, blue), np.uint8), "JPEG", quality=95)


@pytest.fixture
def pets():
    """Cats are red, dogs are blue, both darker with their number."""
    files = {f"cat.{n}.jpg": jpeg(250 - 20 * n, 0) for n in range(5)}
    files |= {f"dog.{n}.jpg": jpeg(0, 250 - 20 * n) for n in range(5)}
    return dataclasses.replace(datasets.get("catvsdog"), per_class=5, test_from=4), files


@pytest.mark.parametrize(
    "layout, place", [("folder", "raw"), ("train.zip", "mirror"), ("dogs-vs-cats.zip", "mirror")]
)
def test_cats_and_dogs(pets, tmp_path, layout, place):
    dataset, files = pets
    home = tmp_path / "raw" / "catvsdog" if place == "raw" else tmp_path / "mirror" / "catvsdog"
    inner = zip_of({f"train/{name}": content for name, content in files.items()})
    if layout == "folder":
        put_all(home / "train", files)
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


def test_a_lost_or_broken_picture_is_named(pets, tmp_path):
    dataset, files = pets
    home = tmp_path / "raw" / "catvsdog"
    files["dog.2.jpg"] = files["dog.2.jpg"][:100]
    put(home / "train.zip", zip_of(files))
    with pytest.raises(UserError, match=r"train\.zip: dog\.2\.jpg is not a readable picture"):
        dataset.prepare(home)
    del files["dog.2.jpg"]
    put(home / "train.zip", zip_of(files))
    with pytest.raises(UserError, match=r"dog\.2\.jpg is missing \(9 of 10\)"):
        dataset.prepare(home)


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
        put_all(home / "train", files)
    read = dataset.prepare(dataset.fetch(tmp_path, str(tmp_path / "mirror")))
    test = [n for n in range(40) if n % 10 >= 8]
    train = [n for n in range(40) if n % 10 < 8 and n != 7]
    assert read.x_train.shape == (31, 3, 16, 16) and len(read.x_test) == 8
    np.testing.assert_allclose(read.x_test[:, 0].mean((1, 2)), [6 * n for n in test], atol=3)
    np.testing.assert_allclose(read.x_train[:, 0].mean((1, 2)), [6 * n for n in train], atol=3)
    assert read.y_train.tolist() == [int(n % 8 == 0) for n in train]
    assert read.y_test.tolist() == [int(n % 8 == 0) for n in test]
    patients = [n // 2 for n in train]
    assert len(set(zip(read.group_train, patients, strict=True))) == len(set(patients))


def test_melanoma_without_a_picture_or_a_column_says_which(lesions, tmp_path):
    dataset, rows, files = lesions
    del files["ISIC_0012.jpg"]
    put(tmp_path / "jpeg-melanoma-256x256.zip", melanoma_zip(rows, files))
    with pytest.raises(UserError, match=r"lacks 1 of the 39 pictures .*ISIC_0012\.jpg"):
        dataset.prepare(tmp_path)
    rows = [row.replace("target", "y") for row in rows]
    put(tmp_path / "jpeg-melanoma-256x256.zip", melanoma_zip(rows, files))
    with pytest.raises(UserError, match=r"jpeg-melanoma-256x256\.zip has no column 'target'"):
        dataset.prepare(tmp_path)


@pytest.mark.parametrize("flat", [False, True])
def test_imagenet_by_folders_and_with_kaggles_flat_validation_part(tmp_path, flat):
    for place, name in enumerate(("n02", "n01", "n03")):
        for k in range(2):
            put(tmp_path / "train" / name / f"{name}_{k}.JPEG", jpeg(10 * place + k, 0))
        where = "val" if flat else f"val/{name}"
        put(tmp_path / where / f"ILSVRC2012_val_0000000{place}.JPEG", jpeg(100 + 20 * place, 0))
    rows = [f"ILSVRC2012_val_0000000{i},{name} 1 2 3 4\n" for i, name in enumerate(("n02", "n01", "n03"))]
    table = "ImageId,PredictionString\n" + "".join(rows)
    if flat:
        put(tmp_path / "LOC_val_solution.csv", table.encode())
    dataset = dataclasses.replace(datasets.get("imagenet"), shape=(3, 8, 8))
    assert dataset.present(tmp_path)
    arrays = dataset.prepare(tmp_path)
    assert arrays.classes == ("n01", "n02", "n03") and arrays.y_train.tolist() == [0, 0, 1, 1, 2, 2]
    reds = dict(zip(arrays.y_test.tolist(), arrays.x_test[:, 0].mean((1, 2)), strict=True))
    np.testing.assert_allclose([reds[0], reds[1], reds[2]], [120, 100, 140], atol=3)
    if flat:
        put(tmp_path / "LOC_val_solution.csv", table.replace("val_00000000", "val_9").encode())
        with pytest.raises(UserError, match=r"solution\.csv lacks 1 pictures of val, .*ILSVRC2012_val_0"):
            dataset.prepare(tmp_path)
    else:
        put(tmp_path / "val" / "n09" / "x.JPEG", jpeg(0, 0))
        with pytest.raises(UserError, match="n09 is not a class of the folder train"):
            dataset.prepare(tmp_path)
