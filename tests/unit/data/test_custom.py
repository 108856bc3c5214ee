"""Datasets without code: arrays, a changed dataset, which class is which and positive; mistakes and their cures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raw_files import OwnTable

from fedbench.data import datasets
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import Prepared, load_prepared, prepare
from fedbench.errors import UserError
from fedbench.spec import DataSpec

Own = Callable[..., str]


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
    scaled = load(own_data(x=x, y=y, extra="test_share: 0.1\nstandardize: true\n"))
    mean, std = read.x_train.mean(), read.x_train.std()
    np.testing.assert_allclose(scaled.x_test, (read.x_test - mean) / std, atol=1e-6)


def test_arrays_are_standardized_without_their_validation_part(own_data):
    x, y = np.arange(40, dtype=float)[:, None], np.tile([0, 1], 20)
    arrays = {"x": x, "y": y, "x_test": x + 1, "y_test": y, "x_val": x + 1000, "y_val": y}
    read = load(own_data(**arrays, extra="standardize: true\n"))
    expected = (np.concatenate([x, x + 1000]) - x.mean()) / x.std()
    np.testing.assert_allclose(read.x_train, expected, rtol=1e-6)
    np.testing.assert_allclose(read.x_test, (x + 1 - x.mean()) / x.std(), rtol=1e-6)


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
    assert datasets.get(name).groups() == {}, "predictions of kept runs need no file"
    assert status.state == "unavailable" and "mine.npz does not exist" in status.detail


def npz(own_data: Own, y: np.ndarray, extra: str = "") -> Prepared:
    """Prepare samples whose feature is the place of their label."""
    return load(own_data(x=np.arange(len(y), dtype=float)[:, None], y=y, extra=extra))


def words(own_table: OwnTable, labels: list[str], extra: str = "") -> Prepared:
    """Prepare a table of them, likewise."""
    return own_table("\n".join(["n,kind", *(f"{n},{label}" for n, label in enumerate(labels))]), extra)


def labels_of(read: Prepared, n: int) -> list[str]:
    """The class of each sample, training and test part together, by its place in the file."""
    result = [""] * n
    for x, y in ((read.x_train, read.y_train), (read.x_test, read.y_test)):
        for row, label in zip(x, y, strict=True):
            result[int(row[0])] = read.classes[label]
    return result


@pytest.mark.parametrize("pair", [(1, 2), (-1, 1), (False, True), (1.0, 2.0), ("None", "benign")])
def test_two_labels_are_two_classes(own_data: Own, pair: tuple[object, object]) -> None:
    read = npz(own_data, np.array(pair)[np.arange(40) % 2])
    names = tuple(str(word).removesuffix(".0") for word in pair)
    assert read.classes == names and {*read.y_train} == {*read.y_test} == {0, 1}
    assert labels_of(read, 40) == [names[n % 2] for n in range(40)]


@pytest.mark.parametrize(
    "pair", [("None", "NA"), ("2", "10"), ("True", "False"), ("1.0", "2.0"), ("case", "control")]
)
def test_the_words_of_a_table(own_table: OwnTable, pair: tuple[str, str]) -> None:
    shown = [word.removesuffix(".0") for word in pair]
    read = words(own_table, [pair[n % 2] for n in range(40)])
    assert labels_of(read, 40) == [shown[n % 2] for n in range(40)]
    assert read.classes == (("2", "10") if "10" in pair else tuple(sorted(shown)))


def test_positive_is_what_the_yaml_says_and_a_remark_tells_where_it_says_nothing(own_table: OwnTable) -> None:
    labels = [("case", "control")[n % 2] for n in range(40)]
    silent = words(own_table, labels)
    (told,) = [line for line in silent.summary["remarks"] if "`positive:`" in line]
    assert silent.classes == ("case", "control") and "control is positive" in told
    chosen = words(own_table, labels, "positive: case\n")
    assert not any("positive" in line for line in chosen.summary.get("remarks", ()))
    assert chosen.classes == ("control", "case") and labels_of(chosen, 40) == labels


@pytest.mark.parametrize(
    ("word", "name"),
    [("yes", "yes"), ("true", "True"), ("1", "1"), ("1.0", "1"), ("'No'", "No"), ("no", "No")],
)
def test_positive_in_the_words_of_a_yaml(own_table: OwnTable, word: str, name: str) -> None:
    other = {"yes": "no", "True": "False", "1": "2", "No": "Yes"}[name]
    read = words(own_table, [(name, other)[n % 2] for n in range(40)], f"positive: {word}\n")
    assert read.classes == (other, name)


def test_of_more_classes_the_positive_ones_become_one(own_table: OwnTable) -> None:
    read = words(own_table, ["abcd"[n % 4] for n in range(80)], "positive: [a, c]\n")
    assert read.classes == ("b+d", "a+c")
    assert labels_of(read, 80) == ["a+c" if n % 2 == 0 else "b+d" for n in range(80)]


@pytest.mark.parametrize("other", ["ill ", "Ill", "\uff49ll"])
def test_labels_that_differ_in_writing_alone_are_an_error_unless_each_is_named(
    own_data: Own, own_table: OwnTable, other: str
) -> None:
    labels = [["well", "ill", other][n % 3] for n in range(60)]
    with pytest.raises(UserError, match=r"'ill' .*differ in writing alone.*`classes:`"):
        words(own_table, labels, "positive: ill\n")
    with pytest.raises(UserError, match="differ in writing alone"):
        npz(own_data, np.array(labels), "positive: ill\n")
    named = f"classes: {{well: well, ill: ill, {other!r}: ill}}\npositive: ill\n"
    assert words(own_table, labels, named).classes == ("well", "ill")


@pytest.mark.parametrize("pair", [("1", "1.0"), ("7", "007"), ("1", "1 ")])
def test_one_number_in_two_writings_is_no_two_classes(own_table: OwnTable, pair: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="differ in writing alone"):
        words(own_table, [[*pair, "2"][n % 3] for n in range(60)])


def test_what_is_merged_into_the_negative_class_is_named_with_its_samples(own_table: OwnTable) -> None:
    labels = ["ilv", *(("well", "ill")[n % 2] for n in range(59))]
    told = words(own_table, labels, "positive: ill\n").summary["remarks"]
    assert [line for line in told if "negative" in line] == [
        "negative is what is not declared positive: ilv (1), well (30)"
    ]
    two = words(own_table, labels[1:], "positive: ill\n").summary.get("remarks", [])
    assert not [line for line in two if "negative" in line]


SOUND = {"x": np.zeros((4, 2)), "y": np.zeros(4, int)}
PAIRS = {"x": np.zeros((20, 1)), "y": np.repeat([0, 1], 10)}
TESTED = {"x_test": np.zeros((4, 2)), "y_test": np.zeros(4, int)}
INFINITE = np.array([[1, 2], [3, 4], [np.nan, np.inf], [5, np.inf]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fil: x.npz", r"mine\.yaml: .*Did you mean 'file'"),
        ("title: x", r"mine\.yaml: .*give either file"),
        ("file: t.xls\nlabel: a", r"save the spreadsheet as \.xlsx or CSV"),
        ("file: x.csv", r"mine\.yaml: .*label names the column"),
        ("file: x.npz\nlabel: a", r"mine\.yaml: .*label goes with a table"),
        ("file: gone.npz", r"mine\.yaml: file gone\.npz does not exist"),
        ("base: melanomma", r"Did you mean 'melanoma'"),
        ("base: melanoma\noptions: {size: 3}", r"option in .*mine\.yaml 'size'"),
        ("base: melanoma\nwhole_groups: true", r"mine\.yaml: .*whole_groups goes with file"),
        ("base: melanoma\noptions: {whole_groups: false}", r"option in .*mine\.yaml 'whole_groups'"),
        ("base: melanoma\noptions: {shape: 64}", r"mine\.yaml: options: .*shape"),
        ("base: melanoma\noptions: {shape: [64, 64]}", r"mine\.yaml: options: .*shape.* 1 or 3"),
        ("base: chexpert\noptions: {twice: [edma]}", r"mine\.yaml: options: .*twice.*'edema'"),
        ("base: chestxray_ad\noptions: {vote: most}", r"mine\.yaml: options: .*vote.*'majority'"),
        ("base: chexpert\noptions: {uncertain: {edema: one}}", r"mine\.yaml: options: .*edema.*'zeros'"),
        ("file: x.csv\nlabel: a\nwhole_groups: true", r"mine\.yaml: .*whole_groups needs group"),
        ("file: mine.npz\nwhole_groups: true", r"needs the group of each sample .*array 'group'"),
        ("file: x.csv\nlabel: a\nsize: [6, 4]", "size goes with images"),
        ("file: x.csv\nlabel: a\nimages: here\ndrop: b", "the inputs are the pictures"),
        ("file: x.csv\nlabel: a\nimages: here\nstandardize: true", r"normalize"),
        ("file: x.csv\nlabel: a\nsite: b\ngroup: b", "b is named twice"),
    ],
)
def test_a_mistake_in_the_yaml(own_data: Own, text: str, message: str) -> None:
    Path(f"config/datasets/{own_data(**PAIRS)}.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        prepare("mine", "data")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": None}, r"mine\.npz has no array 'y'"),
        ({"x_test": np.zeros((1, 2))}, r"has no array 'y_test'"),
        (TESTED | {"site": np.arange(4)}, r"has no array 'site_test'"),
        (TESTED | {"group_test": np.arange(4)}, r"has no array 'group'"),
        ({"labels": np.zeros(4)}, r"unknown array in mine\.npz"),
        ({"x_val": np.zeros((2, 3)), "y_val": np.zeros(2, int)}, r"x_val is .*: make them alike"),
        ({"y": np.zeros(3, int)}, r"different numbers of samples: x of 4, y of 3"),
        ({"site": np.zeros(3, int)}, r"x of 4, y of 4, site of 3"),
        ({"y": np.full(4, 0.5)}, r"the label 0\.5 is not a whole number"),
        ({"y": np.arange(4).astype("datetime64[D]")}, r"mine\.npz: its labels are not text"),
        (TESTED | {"x": INFINITE, "x_test": INFINITE}, r"2 of 4 train inputs, first \[2\], are not finite in float32"),
        ({"y": np.zeros((4, 2), int)}, r"mine\.npz: array 'y' has shape \[4, 2\], expected \[n\]"),
        ({"group": np.full(4, 1.5)}, r"groups must be whole numbers or names"),
        ({"x": np.zeros((4, 3, 8, 3))}, r"layout: NCHW` or `layout: NHWC`"),
        ({"x": np.full((4, 8, 8), 130.5)}, r"fractions from 130.5 to 130.5; .* divide by 255"),
        ({"x_train": np.zeros((4, 2))}, r"'x_train' and another array are both x_train"),
        ({"x": np.full((4, 2), "1.5")}, r"array 'x' holds <U3, not real numbers"),
        ({"y": np.array(["a", 1, 2, 3], object)}, r"text as str and not as object"),
        (TESTED | {"y": np.arange(4) % 2, "y_test": np.arange(4) % 3}, "class '2' has test samples and none to train"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_arrays(own_data: Own, changed: dict[str, np.ndarray], message: str) -> None:
    arrays = {name: array for name, array in {**SOUND, **changed}.items() if array is not None}
    with pytest.raises(UserError, match=message):
        prepare(own_data(**arrays), "data")


ROWS = [f"{n},{'ab'[n % 2]}" for n in range(20)]


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("a,b\n1,2", "", r"unknown column in t\.csv 'kind'"),
        ("dose,kind\n1,a\n,b\n3,a", "", r"line 3: column 'dose' is empty.*`missing: drop` or `missing: median`"),
        ("dose,kind\n1,a\n2,\n3,a", "missing: median\n", r"line 3: column 'kind' is empty.*delete such rows; `miss"),
        ("dose,kind\n1,a\n<2,b\n3,a", "", r"line 3: column 'dose' has '<2', which is not numeric.*`drop: \[dose\]`"),
        ("dose,kind\n" + "\n".join(f"w{n},{n % 2}" for n in range(60)), "", r"60 different.*`group: dose`, else `drop"),
        ("dose,kind\n1,a\n2,b", "drop: dosis\n", r"unknown column in t\.csv 'dosis'\. Did you mean 'dose'"),
        ("dose,x,kind\n1,,a\n2,,b", "missing: median\n", r"column 'x' has empty cells alone; write `drop: \[x\]`"),
        ("a,kind\n1,1\n2,0,3", "", r"t\.csv cannot be read as a table .*line 3, saw 3\): it must have"),
        ("dose;kind\n1;a;7\n2;b;7", "", r"length of data.*a header of 2 names, separated by ';', and as many cells"),
        *((empty, "", r"t\.csv is empty: save") for empty in ("", "\n", b"\xef\xbb\xbf")),
        ("kind\n1\n0", "", r"t\.csv has 2 rows and 0 columns of features"),
        ("a,kind\n1,1\r2,0\n3,1", "", r"t\.csv cannot be read as a table"),
        ("größe,kind\n1,1\n2,0".encode("latin-1"), "", r"t\.csv cannot be read as a table: it must be UTF-8"),
        ("dose;kind\n1,5;a\n2.5;b\n", "", r"decimal commas \(1,5\) and decimal points \(2\.5\)"),
        ("dose,kind\n" + "\n".join(ROWS), "positive: c\n", r"positive: unknown class 'c'"),
        ("dose,kind\n" + "\n".join(ROWS), "positive: [a, b]\n", "positive names every class"),
        ("dose,kind\n" + "\n".join(ROWS), "classes: {a: well}\n", r"unknown label 'b'.* Name it under classes"),
        ("dose,kind\n" + "\n".join(ROWS), "test_share: 0.01\n", "leaves no test sample of 20: take a larger"),
        ("dose,kind\n" + "\n".join(ROWS), "test_share: 0.99\n", "leaves no training sample of 20: take a smaller"),
        ("dose,kind\n" + "\n".join(ROWS), "images: nowhere\n", r"images: nowhere is no folder"),
        *((f"dose,kind\n1,a\n{number},b\n", "", r"t\.csv, line 3: column 'dose' has .*`drop: \[dose\]`")
            for number in ("1e39", "-1e39", "inf", "9" * 40)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_mistake_in_a_table(own_table: OwnTable, text: str | bytes, keys: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        own_table(text, keys)


def test_too_few_groups_name_the_file_and_the_share(own_data: Own) -> None:
    name = own_data(**PAIRS, group=np.repeat([0, 1], 10), extra="whole_groups: true\n")
    with pytest.raises(UserError, match=r"mine\.npz: test_share: the 10 samples of label 0 lie in 1 groups"):
        prepare(name, "data")


def test_bases_that_lead_in_a_circle_and_names_that_exist_are_named(own_data: Own) -> None:
    own_data(**PAIRS)
    for name, base in (("a", "b"), ("b", "a")):
        Path(f"config/datasets/{name}.yaml").write_text(f"base: {base}\n")
    with pytest.raises(UserError, match=r"a\.yaml: base: a -> b -> a leads in a circle"):
        datasets.get("a")
    with pytest.raises(UserError, match="'breastmnist' is the name of a dataset that exists"):
        datasets.get(own_data("breastmnist", **PAIRS))


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_a_file_that_is_a_device_is_named(own_data: Own, ending: str) -> None:
    own_data(**PAIRS)
    Path(f"odd.{ending}").symlink_to(os.devnull)
    Path("config/datasets/odd.yaml").write_text(f"file: odd.{ending}\n{'label: a' * (ending == 'csv')}")
    with pytest.raises(UserError, match=rf"odd\.yaml: file odd\.{ending} is no regular file"):
        datasets.get("odd").definition()
