"""Mistakes in the file of a dataset of one's own, and in its YAML."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.prepared import prepare
from fedbench.errors import UserError


def test_bases_that_lead_in_a_circle_are_named(own_data, tmp_path):
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    for name, base in (("a", "b"), ("b", "a")):
        (tmp_path / "config" / "datasets" / f"{name}.yaml").write_text(f"base: {base}\n")
    with pytest.raises(UserError, match=r"a\.yaml: base: a -> b -> a leads in a circle"):
        datasets.get("a")


@pytest.mark.parametrize(
    "text, message",
    [
        ("fil: x.npz", r"mine\.yaml: .*Did you mean 'file'"),
        ("title: x", r"mine\.yaml: .*give either file"),
        ("file: x.txt", r"mine\.yaml: .*\.npz, \.csv or \.xlsx"),
        ("file: x.csv", r"mine\.yaml: .*label names the column"),
        ("file: [", r"mine\.yaml"),
        ("file: gone.npz", r"mine\.yaml: file gone\.npz does not exist"),
        ("base: mine", r"mine\.yaml: base: mine -> mine leads in a circle"),
        ("base: melanomma", r"Did you mean 'melanoma'"),
        ("base: melanoma\noptions: {size: 3}", r"option in .*mine\.yaml 'size'"),
        ("base: melanoma\nwhole_groups: true", r"mine\.yaml: .*whole_groups goes with file"),
        ("base: melanoma\noptions: {whole_groups: false}", r"option in .*mine\.yaml 'whole_groups'"),
        ("base: mnist\noptions: {known_as: CIFAR10}", r"option in .*mine\.yaml 'known_as'"),
        ("file: mine.csv\nlabel: a\nwhole_groups: true", r"mine\.yaml: .*whole_groups needs group"),
        (
            "file: mine.npz\nwhole_groups: true",
            r"whole_groups needs the group of each sample .*array 'group'",
        ),
        ("base: melanoma\noptions: {shape: 64}", r"mine\.yaml: options: .*shape"),
    ],
)
def test_a_mistake_in_the_yaml_is_named(own_data, tmp_path, text, message):
    own_data(x=np.zeros((20, 1)), y=np.repeat([0, 1], 10))
    (tmp_path / "config" / "datasets" / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        prepare("mine", "data")


SOUND = {"x": np.zeros((4, 2)), "y": np.zeros(4, int)}
TEXT = np.array(["a", 1, 2, 3], object)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"y": None}, r"mine\.npz has no array 'y'"),
        ({"x_test": np.zeros((1, 2))}, r"has no array 'y_test'"),
        ({"labels": np.zeros(4)}, r"unknown array in mine\.npz"),
        ({"y": np.zeros(3, int)}, r"4 inputs and 3 labels"),
        ({"y": np.full(4, 0.5)}, r"the label 0\.5 is not a whole number"),
        ({"y": np.array([0, 1, np.inf, 1])}, r"the label inf is not a whole number"),
        ({"x": np.full((4, 2), 1e300)}, r"\[0\], are not finite in float32"),
        (
            {
                name: np.array([[1, 2], [3, 4], [np.nan, np.inf], [5, np.inf]])
                for name in ("x_train", "x_test")
            }
            | {"y_train": np.zeros(4, int), "y_test": np.zeros(4, int), "x": None, "y": None},
            r"2 of 4 train inputs, first \[2\], are not finite in float32: replace them, or leave them out",
        ),
        ({"y": np.zeros((4, 2), int)}, r"mine\.npz: array 'y' has shape \[4, 2\], expected \[n\]"),
        ({"group": np.zeros((4, 2))}, r"array 'group' has shape \[4, 2\]"),
        ({"group": np.full(4, 1.5)}, r"groups must be whole numbers or names"),
        ({"x": np.zeros((4, 3, 8, 3))}, r"layout: NCHW` or `layout: NHWC`"),
        ({"x": np.zeros((4, 9, 8, 7))}, r"\[4, 9, 8, 7\], which does not say where"),
        ({"x": np.full((4, 8, 8), 130.5)}, r"fractions from 130.5 to 130.5; .* divide by 255"),
        ({"x_train": np.zeros((4, 2))}, r"'x_train' and another array are both x_train"),
        ({"x": np.full((4, 2), "1.5")}, r"array 'x' holds <U3, not real numbers"),
        ({"y": TEXT}, r"text as str and not as object"),
    ],
)
def test_a_mistake_in_the_arrays_is_named(own_data, changed, message):
    arrays = {name: array for name, array in {**SOUND, **changed}.items() if array is not None}
    with pytest.raises(UserError, match=message):
        prepare(own_data(**arrays), "data")


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2", r"unknown column in mine\.csv 'state'"),
        ("a,state\n1,1\n,0", r"mine\.csv, line 3: column 'a' is empty"),
        ("a,state\n1,1\n2,0,3", r"mine\.csv cannot be read as a table .*line 3, saw 3\): it must have"),
        ("", r"mine\.csv cannot be read as a table .*No columns"),
        ("a,state", r"mine\.csv has 0 rows and 1 columns of features"),
        ("a,state\n1,1\r2,0\n3,1", r"mine\.csv, line 2 has a carriage return"),
        ("a,state\n1,1\n2,0\r3,1\n", r"mine\.csv, line 3 has a carriage return"),
        ("state\n1\n0", r"mine\.csv has 2 rows and 0 columns of features"),
        ("größe,state\n1,1\n2,0".encode("latin-1"), r"mine\.csv cannot be read as a table: it must be UTF-8"),
    ],
)
def test_a_mistake_in_a_csv_is_named(own_data, tmp_path, text, message):
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    (tmp_path / "mine.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "config" / "datasets" / "mine.yaml").write_text("file: mine.csv\nlabel: state")
    with pytest.raises(UserError, match=message):
        prepare("mine", "data")


def test_too_few_groups_name_the_file_and_the_share(own_data):
    arrays = {"x": np.zeros((20, 1)), "y": np.repeat([0, 1], 10), "group": np.repeat([0, 1], 10)}
    with pytest.raises(UserError, match=r"mine\.npz: test_share: the 10 samples of label 0 lie in 1 groups"):
        prepare(own_data(**arrays, extra="whole_groups: true\n"), "data")


@pytest.mark.parametrize(
    "share, message",
    [
        (0.01, "leaves no test sample of 20: take a larger"),
        (0.99, "leaves no training sample of 20: take a smaller"),
    ],
)
def test_a_share_that_leaves_a_part_empty_is_named(own_data, share, message):
    name = own_data(x=np.zeros((20, 1)), y=np.repeat([0, 1], 10), extra=f"test_share: {share}\n")
    with pytest.raises(UserError, match=rf"mine\.npz: test_share: {share} of each of 2 classes {message}"):
        prepare(name, "data")


def test_a_yaml_cannot_hide_a_dataset_of_the_library(own_data):
    with pytest.raises(UserError, match=r"'mnist' is the name of a dataset that exists"):
        datasets.get(own_data("mnist", x=np.zeros((2, 1)), y=np.array([0, 1])))


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_a_file_that_is_a_device_or_a_pipe_is_named_and_not_waited_for(own_data, tmp_path, ending):
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    os.mkfifo(tmp_path / "pipe")
    label = "" if ending == "npz" else "\nlabel: a"
    (tmp_path / "config" / "datasets" / "odd.yaml").write_text(f"file: odd.{ending}{label}")
    for target in (tmp_path / "pipe", "/dev/zero"):
        (tmp_path / f"odd.{ending}").symlink_to(target)
        code = "from fedbench.data import datasets; datasets.get('odd').definition()"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert f"odd.yaml: file odd.{ending} is no regular file" in done.stderr
        (tmp_path / f"odd.{ending}").unlink()


@pytest.mark.parametrize(
    "text", ["a,state\r1,x\r3,x\r2,y\r4,y\r", 'a,remark,state\n1,"u\rv",x\n2,w,y\n3,w,x\n4,w,y\n']
)
def test_carriage_returns_that_end_all_lines_or_stand_in_quotes_are_read(own_data, tmp_path, text):
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    (tmp_path / "mine.csv").write_bytes(text.encode())
    (tmp_path / "config" / "datasets" / "mine.yaml").write_text(
        "file: mine.csv\nlabel: state\ntest_share: 0.5"
    )
    assert len(datasets.get("mine").facts()[0]) == 1
