"""Which class is which, and which is positive, whatever the labels of one's own file are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedbench.data import datasets
from fedbench.data.prepared import Prepared, load_prepared, prepare
from fedbench.errors import UserError

Own = Callable[..., str]


def npz(own_data: Own, y: np.ndarray, extra: str = "") -> Prepared:
    """Prepare samples whose feature is the place of their label."""
    name = own_data(x=np.arange(len(y), dtype=float)[:, None], y=y, extra=extra)
    prepare(name, "data")
    return load_prepared(name, "data")


def table(own_data: Own, labels: list[str], extra: str = "") -> Prepared:
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    rows = [f"{n},{label}" for n, label in enumerate(labels)]
    Path("words.csv").write_text("\n".join(["n,kind", *rows]))
    Path("config/datasets/words.yaml").write_text(f"file: words.csv\nlabel: kind\n{extra}")
    prepare("words", "data")
    return load_prepared("words", "data")


def labels_of(read: Prepared, n: int) -> list[str]:
    """The class of each sample, training and test part together, by its place in the file."""
    result = [""] * n
    for x, y in ((read.x_train, read.y_train), (read.x_test, read.y_test)):
        for row, label in zip(x, y, strict=True):
            result[int(row[0])] = read.classes[label]
    return result


@pytest.mark.parametrize(
    ("pair", "names"),
    [
        ((1, 2), ("1", "2")),
        ((-1, 1), ("-1", "1")),
        ((0, 7), ("0", "7")),
        ((False, True), ("False", "True")),
        ((1.0, 2.0), ("1", "2")),
        (("None", "benign"), ("None", "benign")),
        (("no", "yes"), ("no", "yes")),
    ],
)
def test_two_labels_are_two_classes(
    own_data: Own, pair: tuple[object, object], names: tuple[str, str]
) -> None:
    """Labels 1 and 2 were three classes, the first of them empty."""
    read = npz(own_data, np.array(pair)[np.arange(40) % 2])
    assert read.classes == names and {*read.y_train} == {*read.y_test} == {0, 1}
    assert labels_of(read, 40) == [names[n % 2] for n in range(40)]


@pytest.mark.parametrize(
    "pair", [("None", "NA"), ("2", "10"), ("True", "False"), ("1.0", "2.0"), ("case", "control")]
)
def test_the_words_of_a_table(own_data: Own, pair: tuple[str, str]) -> None:
    shown = [word.removesuffix(".0") for word in pair]
    read = table(own_data, [pair[n % 2] for n in range(40)])
    assert labels_of(read, 40) == [shown[n % 2] for n in range(40)]
    assert read.classes == (("2", "10") if "10" in pair else tuple(sorted(shown)))


def test_positive_is_what_the_yaml_says_and_a_remark_tells_where_it_says_nothing(own_data: Own) -> None:
    words = [("case", "control")[n % 2] for n in range(40)]
    silent = table(own_data, words)
    assert silent.classes == ("case", "control")
    assert any(
        "control is positive" in remark and "`positive:`" in remark for remark in silent.summary["remarks"]
    )
    chosen = table(own_data, words, "positive: case\n")
    assert chosen.classes == ("control", "case") and not any(
        "positive" in line for line in chosen.summary.get("remarks", ())
    )
    assert labels_of(chosen, 40) == words


@pytest.mark.parametrize(
    ("word", "name"), [("yes", "yes"), ("true", "True"), ("1", "1"), ("'No'", "No"), ("no", "No")]
)
def test_positive_in_the_words_of_a_yaml(own_data: Own, word: str, name: str) -> None:
    other = {"yes": "no", "True": "False", "1": "2", "No": "Yes"}[name]
    read = table(own_data, [(name, other)[n % 2] for n in range(40)], f"positive: {word}\n")
    assert read.classes == (other, name)


def test_of_more_classes_the_positive_ones_become_one(own_data: Own) -> None:
    read = table(own_data, ["abcd"[n % 4] for n in range(80)], "positive: [a, c]\n")
    assert read.classes == ("b+d", "a+c")
    assert labels_of(read, 80) == ["a+c" if n % 2 == 0 else "b+d" for n in range(80)]


def test_names_for_labels(own_data: Own) -> None:
    read = npz(
        own_data, np.arange(60) % 3, "classes: {0: benign, 1: benign, 2: malignant}\npositive: malignant\n"
    )
    assert read.classes == ("benign", "malignant")
    assert labels_of(read, 60) == ["malignant" if n % 3 == 2 else "benign" for n in range(60)]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("positive: malignent\n", r"positive: unknown class 'malignent'\. Did you mean 'malignant'"),
        ("positive: [benign, malignant]\n", "positive names every class"),
        ("classes: {benign: harmless}\n", r"unknown label 'malignant'.* Name it under classes"),
    ],
)
def test_a_slip_is_named(own_data: Own, extra: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        table(own_data, [("benign", "malignant")[n % 2] for n in range(40)], extra)


def test_a_class_of_the_test_part_alone_is_refused(own_data: Own) -> None:
    x = np.arange(8.0)[:, None]
    with pytest.raises(UserError, match="the class '2' has samples in the test part alone"):
        prepare(own_data(x=x, y=np.arange(8) % 2, x_test=x, y_test=np.arange(8) % 3), "data")


def test_the_order_of_classes_is_in_the_key(own_data: Own) -> None:
    table(own_data, [("case", "control")[n % 2] for n in range(40)])
    silent = datasets.get("words").content()
    Path("config/datasets/words.yaml").write_text("file: words.csv\nlabel: kind\npositive: case\n")
    assert datasets.get("words").content() != silent


@pytest.mark.parametrize("other", ["ill ", "Ill", "\uff49ll"])
def test_labels_that_differ_in_writing_alone_are_an_error_unless_each_is_named(
    own_data: Own, other: str
) -> None:
    words = [["well", "ill", other][n % 3] for n in range(60)]
    with pytest.raises(UserError, match=r"'ill' .*differ in writing alone.*`classes:`"):
        table(own_data, words, "positive: ill\n")
    with pytest.raises(UserError, match="differ in writing alone"):
        npz(own_data, np.array(words), "positive: ill\n")
    named = f"classes: {{well: well, ill: ill, {other!r}: ill}}\npositive: ill\n"
    assert table(own_data, words, named).classes == ("well", "ill")


@pytest.mark.parametrize("pair", [("1", "1.0"), ("7", "007"), ("1", "1 ")])
def test_one_number_in_two_writings_is_no_two_classes(own_data: Own, pair: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="differ in writing alone"):
        table(own_data, [[*pair, "2"][n % 3] for n in range(60)])


def test_labels_with_leading_zeros_keep_them(own_data: Own) -> None:
    assert table(own_data, [("001", "010")[n % 2] for n in range(40)]).classes == ("001", "010")


def test_what_is_merged_into_the_negative_class_is_named_with_its_samples(own_data: Own) -> None:
    words = ["ilv", *(("well", "ill")[n % 2] for n in range(59))]
    told = table(own_data, words, "positive: ill\n").summary["remarks"]
    assert [line for line in told if "negative" in line] == [
        "negative is what is not declared positive: ilv (1), well (30)"
    ]
    two = table(own_data, words[1:], "positive: ill\n").summary.get("remarks", [])
    assert not [line for line in two if "negative" in line]


def test_words_of_features_and_patients_that_differ_in_writing_alone_are_remarked(own_data: Own) -> None:
    own_data(x=np.zeros((2, 1)), y=np.array([0, 1]))
    rows = [f"{n},{['m', 'f', 'M '][n % 3]},{['P1', 'p1', 'P2'][n % 3]},{n % 2}" for n in range(60)]
    Path("words.csv").write_text("\n".join(["n,sex,patient,kind", *rows]))
    Path("config/datasets/words.yaml").write_text("file: words.csv\nlabel: kind\ngroup: patient\n")
    prepare("words", "data")
    told = load_prepared("words", "data").summary["remarks"]
    assert (
        len([line for line in told if "writing alone" in line and ("'sex'" in line or "'P1'" in line)]) == 2
    )
