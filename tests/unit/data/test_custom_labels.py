"""Which class is which, and which is positive, whatever the labels of one's own file are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from raw_files import OwnTable

from fedbench.data.prepared import Prepared, load_prepared, prepare
from fedbench.errors import UserError

Own = Callable[..., str]


def npz(own_data: Own, y: np.ndarray, extra: str = "") -> Prepared:
    """Prepare samples whose feature is the place of their label."""
    name = own_data(x=np.arange(len(y), dtype=float)[:, None], y=y, extra=extra)
    prepare(name, "data")
    return load_prepared(name, "data")


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
    ("word", "name"), [("yes", "yes"), ("true", "True"), ("1", "1"), ("'No'", "No"), ("no", "No")]
)
def test_positive_in_the_words_of_a_yaml(own_table: OwnTable, word: str, name: str) -> None:
    other = {"yes": "no", "True": "False", "1": "2", "No": "Yes"}[name]
    read = words(own_table, [(name, other)[n % 2] for n in range(40)], f"positive: {word}\n")
    assert read.classes == (other, name)


def test_of_more_classes_the_positive_ones_become_one(own_table: OwnTable) -> None:
    read = words(own_table, ["abcd"[n % 4] for n in range(80)], "positive: [a, c]\n")
    assert read.classes == ("b+d", "a+c")
    assert labels_of(read, 80) == ["a+c" if n % 2 == 0 else "b+d" for n in range(80)]


def test_names_for_labels(own_data: Own) -> None:
    keys = "classes: {0: benign, 1: benign, 2: malignant}\npositive: malignant\n"
    read = npz(own_data, np.arange(60) % 3, keys)
    assert read.classes == ("benign", "malignant")
    assert labels_of(read, 60) == ["malignant" if n % 3 == 2 else "benign" for n in range(60)]


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
