"""Mistakes in the file of a dataset of one's own, and in its YAML, are named with their cure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raw_files import OwnTable

from fedbench.data import datasets
from fedbench.data.prepared import prepare
from fedbench.errors import UserError

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
        (
            "file: mine.npz\nwhole_groups: true",
            r"whole_groups needs the group of each sample .*array 'group'",
        ),
        ("file: x.csv\nlabel: a\nsize: [6, 4]", "size goes with images"),
        ("file: x.csv\nlabel: a\nimages: here\ndrop: b", "the inputs are the pictures"),
        ("file: x.csv\nlabel: a\nimages: here\nstandardize: true", r"normalize"),
        ("file: x.csv\nlabel: a\nsite: b\ngroup: b", "b is named twice"),
    ],
)
def test_a_mistake_in_the_yaml(own_data: Callable[..., str], text: str, message: str) -> None:
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
        (
            {"x": INFINITE, "x_test": INFINITE, "y_test": np.zeros(4, int)},
            r"2 of 4 train inputs, first \[2\], are not finite in float32: replace them, or leave them out",
        ),
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
def test_a_mistake_in_the_arrays(
    own_data: Callable[..., str], changed: dict[str, np.ndarray], message: str
) -> None:
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
        ("dose,kind\n" + "\n".join(f"w{n},{n % 2}" for n in range(60)), "", r"not numeric and has 60 different words"),
        ("dose,kind\n1,a\n2,b", "drop: dosis\n", r"unknown column in t\.csv 'dosis'\. Did you mean 'dose'"),
        ("dose,x,kind\n1,,a\n2,,b", "missing: median\n", r"column 'x' has empty cells alone; write `drop: \[x\]`"),
        ("a,kind\n1,1\n2,0,3", "", r"t\.csv cannot be read as a table .*line 3, saw 3\): it must have"),
        ("dose;kind\n1;a;7\n2;b;7", "", r"length of data.*a header of 2 names, separated by ';', and as many cells"),
        ("", "", r"t\.csv cannot be read as a table .*No columns"),
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


def test_too_few_groups_name_the_file_and_the_share(own_data: Callable[..., str]) -> None:
    name = own_data(**PAIRS, group=np.repeat([0, 1], 10), extra="whole_groups: true\n")
    with pytest.raises(UserError, match=r"mine\.npz: test_share: the 10 samples of label 0 lie in 1 groups"):
        prepare(name, "data")


def test_bases_that_lead_in_a_circle_and_names_that_exist_are_named(own_data: Callable[..., str]) -> None:
    own_data(**PAIRS)
    for name, base in (("a", "b"), ("b", "a")):
        Path(f"config/datasets/{name}.yaml").write_text(f"base: {base}\n")
    with pytest.raises(UserError, match=r"a\.yaml: base: a -> b -> a leads in a circle"):
        datasets.get("a")
    with pytest.raises(UserError, match="'breastmnist' is the name of a dataset that exists"):
        datasets.get(own_data("breastmnist", **PAIRS))


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_a_file_that_is_a_device_is_named(own_data: Callable[..., str], ending: str) -> None:
    own_data(**PAIRS)
    Path(f"odd.{ending}").symlink_to(os.devnull)
    Path("config/datasets/odd.yaml").write_text(f"file: odd.{ending}\n{'label: a' * (ending == 'csv')}")
    with pytest.raises(UserError, match=rf"odd\.yaml: file odd\.{ending} is no regular file"):
        datasets.get("odd").definition()
