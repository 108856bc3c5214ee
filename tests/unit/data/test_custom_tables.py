"""A spreadsheet as it comes: separators, decimal commas, empty cells, words; learned from training rows alone."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from raw_files import OwnTable

from fedbench.data import datasets
from fedbench.data.custom.encoding import scaled, scaling_of
from fedbench.data.custom.leaks import identifiers, second_labels
from fedbench.data.summary import remarks
from fedbench.errors import UserError
from fedbench.spec import DataSpec


def rows(n: int = 40, separator: str = ",", point: str = ".") -> list[str]:
    """Feature n + 0.5 with the class, as a line each."""
    return [f"{n}{point}5{separator}{'ab'[n % 2]}" for n in range(n)]


@pytest.mark.parametrize(
    ("separator", "point", "coding"),
    [(";", ",", "utf-8-sig"), (";", ".", "utf-8"), ("\t", ",", "utf-16"), (",", ".", "utf-8-sig")],
)
def test_what_a_spreadsheet_saves_is_the_same_table(
    own_table: OwnTable, separator: str, point: str, coding: str
) -> None:
    plain = own_table("\n".join(["dose,kind", *rows()]))
    text = "\r\n".join([f"dose{separator}kind", *rows(40, separator, point)])
    other = own_table(text.encode(coding))
    for name in ("x_train", "x_test", "y_train", "y_test"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(other, name))


@pytest.mark.parametrize(
    "text",
    [
        "a,kind\r1,x\r3,x\r2,y\r4,y\r",
        'a,remark,kind\n1,"u\rv",x\n2,w,y\n3,w,x\n4,w,y\n',
        "a;kind\n1;x;\n2;y;\n3;x;\n4;y;\n",
        "a;age, years;kind\n1;7;x\n2;9;y\n3;8;x\n4;7;y\n",
        'a;"age, in years, at entry";kind\n1;7;x\n2;9;y\n3;8;x\n4;7;y\n',
    ],
)
def test_odd_ends_and_headers_are_read(own_table: OwnTable, text: str) -> None:
    """Carriage returns that end lines or stand in quotes, a separator behind the last cell, a comma in a name."""
    read = own_table(text, "test_share: 0.5\n")
    assert sorted([*read.x_train[:, 0], *read.x_test[:, 0]]) == [1, 2, 3, 4]


def test_words_become_features_and_gaps_the_median_of_the_training_part_alone(own_table: OwnTable) -> None:
    lines = [
        f"{n},{'' if n % 5 == 3 else n * n},{'mf'[n % 3 == 0]},{['red', 'green', 'blue', ''][n % 4]},{'ab'[n % 2]}"
        for n in range(60)
    ]
    read = own_table("\n".join(["n,dose,sex,colour,kind", *lines]), "missing: median\n")
    assert read.x_train.shape[1] == 2 + 1 + 4  # one of two sexes; three colours and none
    place, dose = read.x_train[:, 0].astype(int), read.x_train[:, 1]
    known = place % 5 != 3
    median = float(np.median(dose[known]))
    every = [n * n for n in range(60) if n % 5 != 3]
    assert {*dose[~known]} == {median} and median != np.median(every)
    gaps = read.x_test[read.x_test[:, 0].astype(int) % 5 == 3]
    assert len(gaps) and {*gaps[:, 1]} == {median}
    np.testing.assert_array_equal(read.x_train[:, 2], place % 3 != 0)
    assert (read.x_train[:, 3:].sum(1) == 1).all() and len({*map(bytes, read.x_train[:, 3:])}) == 4
    assert any("median: dose (12)" in note for note in read.notes)
    assert any("one feature for each word" in note and "sex, colour" in note for note in read.notes)


def standardized(train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    return [scaled(part, *scaling_of(train)) for part in (train, test)]


SIZES = [(1.7e9, 60.0), (1999.0, 8.0), (3e25, 1e25), (2e-25, 1e-25), (0.0, 1.0)]
"""Mean and deviation of a Unix time, of years, of what single precision overflows or vanishes in when squared."""


@pytest.mark.parametrize(("mean", "std"), SIZES)
def test_standardizing_keeps_what_single_precision_loses(mean: float, std: float) -> None:
    rng = np.random.default_rng(0)
    x = mean + std * rng.standard_normal((1_000, 1))
    exact = [(Fraction(v) - Fraction(x[0, 0])) for v in x[:, 0].tolist()]
    middle = sum(exact) / len(exact)
    spread = math.sqrt(sum((v - middle) ** 2 for v in exact) / len(exact) / Fraction(std) ** 2)
    expected = [float((v - middle) / Fraction(std)) / spread for v in exact]
    train, test = standardized(x, x[:7])
    np.testing.assert_allclose(train[:, 0], expected, rtol=0, atol=2 * 2.0**-52 * abs(mean / std) + 1e-12)
    np.testing.assert_array_equal(test, train[:7])


@pytest.mark.parametrize("kind", [np.float32, np.int16, np.float64])
def test_a_million_rows_of_years_have_mean_zero_and_deviation_one(kind: type) -> None:
    years = np.random.default_rng(0).integers(1990, 2020, (1_000_000, 1)).astype(kind)
    train, _ = standardized(years, years[:1])
    assert abs(train.mean()) < 1e-9 and abs(train.std() - 1) < 1e-9


def test_a_feature_whose_spread_is_that_of_rounding_is_zero_in_both_parts() -> None:
    noisy = np.where(np.arange(1_000) % 2, 0.1 + 0.2, 0.3)[:, None]
    for x in (noisy, np.full((100_000, 1), 0.1), np.full((9, 1), 1e25), noisy.astype(np.float32)):
        train, test = standardized(x, x[:3] + np.asarray(5, x.dtype))
        assert not train.any() and not test.any()


def test_a_unix_time_is_standardized_from_its_digits(own_table: OwnTable) -> None:
    """A word stays 0 or 1."""
    lines = [f"{1_700_000_000 + n},{'mf'[n % 3 == 0]},{'ab'[n % 2]}" for n in range(60)]
    time, sex = own_table("\n".join(["time,sex,kind", *lines]), "standardize: true\n").x_train.T
    assert len(np.unique(time)) == 48 and abs(time.mean()) < 1e-6 and {*sex} == {0.0, 1.0}


def test_columns_are_chosen_by_name(own_table: OwnTable) -> None:
    text = "\n".join(["id,dose,kind", *(f"{1000 + n},{row}" for n, row in enumerate(rows()))])
    full, dropped, taken = (own_table(text, keys) for keys in ("", "drop: id\n", "features: [dose]\n"))
    assert full.x_train.shape[1] == 2 and dropped.x_train.shape[1] == taken.x_train.shape[1] == 1
    np.testing.assert_array_equal(dropped.x_train, taken.x_train)


def workbook(name: str, *sheets: list[list[object]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for i, rows_of_sheet in enumerate(sheets):
        sheet = book.create_sheet(f"{name}{i}")
        for row in rows_of_sheet:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_the_first_sheet_of_a_workbook_is_the_same_table_as_its_csv(own_table: OwnTable) -> None:
    """Whole numbers, fractions, words with commas, empty cells, and a second sheet with something else."""
    cells: list[list[object]] = [["dose", "sex", "remark", "kind"]]
    cells += [[n + 0.5 * (n % 3), "mf"[n % 2], ["a, b", None][n % 4 == 3], n % 2 + 1] for n in range(40)]
    text = "\n".join(",".join(f'"{"" if cell is None else cell}"' for cell in row) for row in cells)
    plain = own_table(text, "missing: median\n")
    other = own_table(workbook("t", cells, [["nothing"], [1]]), "missing: median\n", "t.xlsx")
    for name in ("x_train", "x_test", "y_train", "y_test"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(other, name))
    assert plain.classes == other.classes == ("1", "2")


def test_mistakes_in_a_workbook_name_its_row_and_column(
    own_table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells: list[list[object]] = [["dose", "kind"], *([n, "ab"[n % 2]] for n in range(20)), [None, "a"]]
    with pytest.raises(UserError, match=r"t\.xlsx, line 22: column 'dose' is empty"):
        own_table(workbook("t", cells), name="t.xlsx")
    with pytest.raises(UserError, match=r"t\.xlsx cannot be read as a workbook"):
        own_table("dose,kind\n1,a\n", name="t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"pip install 'fedbench-suite\[excel\]'"):
        own_table("", name="t.xlsx")


def test_leaks_are_remarked(own_table: OwnTable) -> None:
    lines = [f"{n // 2},{5000 + n},P{n // 4},{'ab'[n % 2]},{n % 7}" for n in range(80)]
    text = "\n".join(["dose,case,patient,kind,study_id", *lines])
    told = " ".join(own_table(text, "group: patient\n").summary["remarks"])
    assert "groups of the test part have training samples too: right for hospitals" in told
    assert "'case' looks like an identifier (all cells differ): write `drop: [case]`" in told
    assert "'study_id' looks like an identifier (by its name)" in told
    twins = own_table(text, "group: patient\ndrop: [case, study_id]\n")
    known = {row.tobytes() for row in twins.x_train}
    same = sum(row.tobytes() in known for row in twins.x_test)
    assert same and f"{same} of {len(twins.x_test)} test" in " ".join(twins.summary["remarks"])
    full = own_table(text, "group: patient\nwhole_groups: true\ndrop: [case, study_id]\n")
    assert not [line for line in full.summary.get("remarks", ()) if "equal" in line or "groups" in line]


def test_the_parts_of_a_table_are_those_of_its_split_column(own_table: OwnTable) -> None:
    words = ["train", "Test", "train", "val", "train"]
    lines = [
        f"{n},{'val' if n < 5 else words[n % 5]},H{n % 2},P{n // 5},{'ab'[n % 3 == 0]}" for n in range(60)
    ]
    text = "\n".join(["n,part,hospital,patient,kind", *lines])
    read = own_table(text, "split: part\nsite: hospital\ngroup: patient\n")
    train, test = read.x_train[:, 0].astype(int), read.x_test[:, 0].astype(int)
    assert read.x_train.shape[1] == 1 and test.tolist() == [*range(6, 60, 5)]
    assert read.held_train is not None and train[read.held_train].tolist() == [*range(5), *range(8, 60, 5)]
    shown = remarks(DataSpec(dataset="t", clients=2), 0, "data")
    assert "parts by column 'part'; its 16 validation rows are used by `validation: own` alone" in shown
    assert read.site_train is not None and read.site_train.tolist() == (train % 2).tolist()
    assert read.group_train is not None and len(np.unique(train // 5 - read.group_train)) == 1
    told = " ".join(read.summary["remarks"])
    for first, second, n in (
        ("training", "validation", 12),
        ("training", "test", 11),
        ("validation", "test", 11),
    ):
        assert f"11 of the {n} groups of the {second} part have {first} samples too" in told


def test_nothing_is_learned_from_validation_rows_of_a_split(own_table: OwnTable) -> None:
    """Neither scaling, medians nor words."""
    rows = [
        f"{n % 9 if n % 4 else ''},{'ab'[n % 2]},{'train' if n % 5 else 'test'},{n % 3 // 2}"
        for n in range(60)
    ]
    more = [f"1000,only,val,{n % 2}" for n in range(20)]
    text = "\n".join(["dose,word,part,kind", *rows])
    how = "split: part\nstandardize: true\nmissing: median\n"
    alone, both = own_table(text, how), own_table("\n".join([text, *more]), how)
    assert both.summary["features"] == alone.summary["features"]
    assert both.held_train is not None and alone.held_train is None
    assert (both.x_train[~both.held_train] == alone.x_train).all() and (both.x_test == alone.x_test).all()
    with pytest.raises(UserError, match=r"test_share .*split"):
        own_table(text, "split: part\ntest_share: 0.3\n")


def test_validation_rows_of_a_split_are_no_training_rows(own_table: OwnTable) -> None:
    """Neither of a site, which then has no client, nor as twins of test rows, nor as all there is of a class."""
    lines = [f"{n},H{n % 2},{'train' if n % 5 else 'test'},{'ab'[n % 3 == 0]}" for n in range(60)]
    held = [*(f"{n},H2,val,{'ab'[n % 2]}" for n in range(60, 70)), "60,H0,test,a"]
    text = "\n".join(["dose,hospital,part,kind", *lines, *held])
    read = own_table(text, "split: part\nsite: hospital\n")
    assert read.sites == ("H0", "H1", "H2") and datasets.count_sites(["t"]) == 2
    assert "equal a training sample" not in " ".join(read.summary["remarks"])
    with pytest.raises(UserError, match=r"class 'c' has test samples and none to train on"):
        own_table("\n".join([text, "1,H0,test,c", "1,H0,val,c"]), "split: part\n")


def test_a_table_that_says_no_split_keeps_the_key_of_its_runs(own_table: OwnTable) -> None:
    text = "\n".join(
        ["dose,kind,part", *(f"{row},{'train' if n % 5 else 'test'}" for n, row in enumerate(rows()))]
    )
    own_table(text, "drop: part\n")
    plain = datasets.get("t").content()
    own_table(text, "split: part\n")
    assert "split" not in plain and "'split': 'part'" in datasets.get("t").content()


@pytest.mark.parametrize(
    ("word", "message"),
    [("trian", r"part in column 'part' of t\.csv 'trian'.*'train'"), ("train", r"no row 'test'")],
)
def test_a_split_column_without_a_test_row_or_with_another_word_is_refused(
    own_table: OwnTable, word: str, message: str
) -> None:
    text = "\n".join(["part,dose,kind", *(f"{word},{row}" for row in rows())])
    with pytest.raises(UserError, match=message):
        own_table(text, "split: part\n")


def test_features_that_are_a_split_or_the_label_again_are_remarked(own_table: OwnTable) -> None:
    def told(column: str, cells: list[object]) -> str:
        text = "\n".join([f"{column},dose,kind", *(f"{cells[n]},{n % 7},{'ab'[n % 2]}" for n in range(60))])
        return " ".join(own_table(text).summary["remarks"])

    assert "'part' looks like a split" in told("part", [("train", "Test", "valid")[n % 3] for n in range(60)])
    assert "looks like a split" not in told("part", [("train", "bus", "test")[n % 3] for n in range(60)])
    assert not [*identifiers(pd.DataFrame({"empty": np.array([None, None], dtype=object)}))]
    again = "alone tells the classes of all 48 training samples apart"
    assert f"'end' {again}" in told("end", [("home", "gone")[n % 2] for n in range(60)])
    assert f"'days' {again}" in told("days", [n % 2 * 100 + n % 3 for n in range(60)])
    assert again not in told("days", [n % 2 * 100 + n % 3 if n % 15 else 50 for n in range(60)])


@pytest.mark.parametrize(
    ("cells", "again"),
    [
        ("201", True),
        (["late", "never", "early"], True),
        (["x", "", "y"], True),
        ("0012", False),  # as many as classes, each in all of them
        ("001", False),  # two classes share one
        ("012345", False),  # a class has two
    ],
)
def test_of_three_classes_a_column_with_a_cell_for_each_is_the_label_again(
    own_table: OwnTable, cells: Sequence[str], again: bool
) -> None:
    lines = [f"{cells[n % len(cells)]},{n % 7},{'abc'[n % 3]}" for n in range(60)]
    said = " ".join(own_table("\n".join(["code,dose,kind", *lines]), "missing: median\n").summary["remarks"])
    assert ("'code' alone tells the classes of all 48 training samples apart" in said) == again


def test_too_few_rows_show_no_second_label() -> None:
    def again(y: np.ndarray) -> list[str]:
        x = 1.0 - y[:, None]
        return [*second_labels(pd.DataFrame(x, columns=["end"]), x, y, ["end"])]

    y = np.repeat([0, 1], [30, 9])
    assert not again(y)
    y = np.repeat([0, 1], 10)
    assert again(y)
    y = np.repeat([0, 1, 2], [10, 10, 9])
    assert not again(y) and again(np.append(y, 2))


def test_numbers_of_more_digits_than_a_whole_number_holds_are_numbers(own_table: OwnTable) -> None:
    lines = [f"{10**24 + n * 10**22},{row}" for n, row in enumerate(rows())]
    assert own_table("\n".join(["mass,dose,kind", *lines])).x_train.shape[1] == 2


def test_truth_values_with_gaps_are_numbers_in_training_and_for_a_model(own_table: OwnTable) -> None:
    lines = [f"{['TRUE', 'FALSE', ''][n % 3]},{n},{'ab'[n % 2]}" for n in range(60)]
    read = own_table("\n".join(["smoker,n,kind", *lines]), "missing: median\n")
    place = read.x_train[:, 1].astype(int)
    median = np.median(read.x_train[place % 3 != 2, 0])
    np.testing.assert_array_equal(read.x_train[:, 0], np.array([1, 0, median])[place % 3])
    learned = datasets.get("t").reading()
    assert learned is not None and [*learned.medians] == ["smoker", "n"]
    Path("new.csv").write_text("smoker,n\nTRUE,1\nFALSE,2\n,3\n")
    np.testing.assert_array_equal(learned.read(Path("new.csv"))[0], [[1, 1], [0, 2], [median, 3]])


@pytest.mark.parametrize("cells", [("1,234", "950", "12,500"), ("1.234", "950", "12.500")])
def test_what_may_be_thousands_is_said(
    own_table: OwnTable, caplog: pytest.LogCaptureFixture, cells: tuple[str, ...]
) -> None:
    def read(*cells: str) -> float:
        caplog.clear()
        lines = [f"{cells[n % len(cells)]};{'ab'[n % 2]}" for n in range(30)]
        return float(own_table("\n".join(["income;kind", *lines])).x_train.max())

    assert read(*cells) == 950
    assert f"{cells[0]} was read as decimals" in caplog.text
    read(*cells, cells[0].replace("1", "0", 1))
    assert "thousands" not in caplog.text


def test_patients_that_differ_in_blanks_alone_are_an_error(own_table: OwnTable) -> None:
    lines = [f"P{n // 2}{' ' * (n % 2)},{row}" for n, row in enumerate(rows())]
    with pytest.raises(UserError, match=r"column 'patient' has 'P0' and 'P0 '"):
        own_table("\n".join(["patient,dose,kind", *lines]), "group: patient\nwhole_groups: true\n")
