"""Published numbers: the files in the repository, and how cells find theirs."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from report_project import Project

from fedbench.errors import UserError
from fedbench.metric_table import Measure
from fedbench.results.compare import unknown_names
from fedbench.results.frame import Printed
from fedbench.results.places import Pooled
from fedbench.results.published import PublishedTable, load_published
from fedbench.study.configuration import load_paper, paper_keys
from fedbench.study.schema import Value

ROOT = Path(__file__).parents[3]
PAPERS = [load_paper(key) for key in paper_keys()]
# what is printed of the data themselves stands in files of their own
COMPARABLE = [
    (paper.key, name)
    for paper in PAPERS
    for name, spec in paper.tables.items()
    if spec.published and not spec.published.endswith("_data.csv")
]


def test_index_lists_every_file_with_its_rows() -> None:
    folder = ROOT / "published"
    with (folder / "index.csv").open(newline="") as stream:
        index = {row["file"]: int(row["rows"]) for row in csv.DictReader(stream)}
    on_disk = {str(path.relative_to(folder)) for path in folder.glob("*/*.csv")}
    assert set(index) == on_disk
    for name, rows in index.items():
        with (folder / name).open(newline="") as stream:
            assert len(list(csv.DictReader(stream))) == rows, name


def find(
    table: PublishedTable, dataset: str, method: str, setting: Mapping[str, Value], metric: str
) -> Printed:
    axes = {name: [value] for name, value in {"dataset": dataset, **setting, "method": method}.items()}
    (number,) = table.at(axes, [metric]).values()
    return number


def test_a_pooled_setting_fits_every_row_that_names_one_value(tmp_path: Path) -> None:
    table = PublishedTable(write(tmp_path / "pooled.csv", "method,p,metric,mean\nM,4,test_auc,0.9\n"))
    assert find(table, "Toy", "M", {"p": Pooled([4, 8])}, "test_auc").printed == 0.9


def test_doubts_are_kept_and_common_remarks_are_not_doubts() -> None:
    climb = load_published("climb", "climb_table2.csv")
    place = {"rho": 10, "n_minority": 3, "alpha": 0.0}
    taken = find(climb, "CIFAR10", "CLIMB", place, "test_minority_accuracy")
    lost = find(climb, "CIFAR10", "Baseline", place, "test_minority_accuracy")
    assert taken.doubt.startswith("AMBIGUOUS") and taken.printed_text == "0.0402"
    assert math.isnan(lost.printed) and lost.printed_text == ""
    table3 = load_published("cycp", "cycp_table3.csv")
    bold = find(table3, "CIFAR-10", "RS-Minimax", {"dir": 0.1, "flip": 0.2}, "test_auc")
    assert bold.note == "bold in print" and not bold.doubt


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


HEAD = "dataset,method,metric,mean,std,n_seeds\n"


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """As spreadsheets write it: the first column was called something else, so every dataset fitted every row."""
    text = HEAD + "Other,M,test_auc,0.1,,\nToy,M,test_auc,0.9,,\n"
    (tmp_path / "bom.csv").write_bytes(text.encode("utf-8-sig"))
    table = find(PublishedTable(tmp_path / "bom.csv"), "Toy", "M", {}, "test_auc")
    assert table.printed == 0.9
    (tmp_path / "utf16.csv").write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match="is not UTF-8"):
        PublishedTable(tmp_path / "utf16.csv")


def test_a_column_that_is_no_setting_of_the_paper_is_named(project: Project) -> None:
    write(project.root / "mine.csv", "dataset,method,imratoi,metric,mean\n")
    with pytest.raises(UserError, match=r"line 1: unknown column 'imratoi'. Did you mean 'imratio'\?"):
        load_published("localscgdam", "mine.csv")


def test_digits_stay_those_of_the_print_and_set_the_decimals_of_each_metric(tmp_path: Path) -> None:
    rows = "Toy,M,test_auc,0.8010,2.5e-2,5\nToy,N,test_auc,1,,\nToy,O,test_auc,,,\nToy,M,test_ap,0.91,,\n"
    first, full, empty, other = PublishedTable(write(tmp_path / "digits.csv", HEAD + rows), "std").values
    assert (first.printed, first.printed_text, first.printed_std, first.printed_std_text) == (
        0.801, "0.8010", 0.025, "2.5e-2",
    )  # fmt: skip
    assert (first.print_seeds, first.comparable_std) == (5, 0.025)
    assert full.printed == 1 and math.isnan(full.printed_std) and math.isnan(full.print_seeds)
    assert math.isnan(empty.printed) and empty.printed_text == ""
    assert [number.print_digits for number in (first, full, empty, other)] == [4, 4, 4, 2]


def test_print_is_of_federated_runs_and_of_no_average_unless_it_says_so(tmp_path: Path) -> None:
    made: dict[str, list[Value]] = {
        "p": [4, 8, "AVG", "slope"],
        "training": ["local", "federated", "gain over local"],
    }
    axes: dict[str, list[Value]] = {"dataset": ["Toy", "AVG"], **made, "method": ["M"]}

    def fits(text: str) -> set[tuple[Value, ...]]:
        at = PublishedTable(write(tmp_path / "print.csv", text)).at(axes, ["test_auc"])
        return {tuple(value for _, value in place[:-1]) for place, _ in at}

    everywhere: set[tuple[Value, ...]] = {("Toy", 4, "federated"), ("Toy", 8, "federated")}
    assert fits("method,metric,mean\nM,test_auc,0.9\n") == everywhere
    head = "dataset,p,training,method,metric,mean\n"
    assert fits(f"{head}Toy,,,M,test_auc,0.9\n") == everywhere
    assert fits(f"{head}AVG,slope,local,M,test_auc,0.9\n") == {("AVG", "slope", "local")}


def test_the_paper_says_how_far_a_metric_of_its_own_reaches(project: Project) -> None:
    write(project.root / "mine.csv", HEAD + "Toy,M,gain,80.1,,\nToy,M,test_auc,1.5,,\n")
    names = {"test_auc": Measure(name="test_auc", label="AUC")}
    bounded, free = (Measure(name="gain", label="gain", high=high) for high in (50.0, math.inf))
    with pytest.raises(UserError, match=r"line 2: mean is '80.1': .* and 50"):
        load_published("localscgdam", "mine.csv", {"gain": bounded, **names})
    values = load_published("localscgdam", "mine.csv", {"gain": free, **names}).values
    assert [value.printed for value in values] == [80.1, 1.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset,method,mean\nToy,M,0.9\n", "lacks the column metric"),
        ("dataset,methd,metric,mean\n", "lacks the column method"),
        ("dataset;method;metric;mean\nToy;M;test_auc;0,9\n", "separated by ';'"),
        ("dataset,method,metric,mean,mean\n", "line 1: a column has no name, or that of another"),
        ("dataset,method,metric,mean,\n", "line 1: a column has no name, or that of another"),
        (f'{HEAD}Toy,"M,test_auc,0.9,,\n', "line 2: unexpected end of data"),
        *((f"{HEAD}\nToy,M,test_auc,{rest}\n", f"line 3: {message}") for rest, message in {
            "0.9x,,": "mean is '0.9x': not a number",
            "nan,,": "mean is 'nan': not a number",
            "inf,,": "mean is 'inf': not a number",
            "8_0,,": "mean is '8_0': not a number",
            "1e400,,": "mean is '1e400': not a number",
            "0.9,0.1,2.5": "n_seeds is '2.5': not a whole number",
            "0.9,0.1,0": "n_seeds is '0': .*between 1 and",
            "0.9": "not as many cells",
            "0.9,,,5": "not as many cells",
            "80.1,,": "mean is '80.1': .*between 0 and 1, .*no percentages",
            "-0.1,,": "mean is '-0.1': .*between 0",
            "0.9,-0.1,": "std is '-0.1': .*between 0",
            ",0.01,": "std is '0.01': its row has no mean; give both or neither",
            "0.801,2.5,": "std is '2.5': std of test_auc lies between 0 and 1",
        }.items()),
        (f"{HEAD}Toy,M,worst_site_test_auc,0.9,,\nToy,M,recall_3,1,,\nToy,M,n_samples,-1,,\n", "line 4: mean is '-1'"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        PublishedTable(write(tmp_path / "bad.csv", text))
    with pytest.raises(UserError, match=r"nowhere\.csv do not exist"):
        load_published("localscgdam", "nowhere.csv")


def test_names_that_nothing_is_called_are_listed_once(project: Project) -> None:
    rows = "CIFAR10,CoDA,test_auc,0.5\nCIFAR10,CoDDA,test_auc,0.5\nB,CoDDA,test_auc,0.5\n,CoDA,test_uac,0.5\n"
    write(project.root / "mine.csv", "dataset,method,metric,mean\n" + rows)
    paper = load_paper("localscgdam")
    spec = paper.tables["table1"].model_copy(update={"published": "mine.csv"})
    assert unknown_names(paper, spec) == ["dataset B", "method CoDDA", "metric test_uac"]


@pytest.mark.parametrize(("key", "name"), COMPARABLE)
def test_the_papers_own_files_name_nothing_strange(key: str, name: str) -> None:
    paper = load_paper(key)
    assert not unknown_names(paper, paper.tables[name])


def test_a_truth_is_written_as_in_yaml_or_python(tmp_path: Path) -> None:
    rows = "M,true,test_auc,0.9\nM,False,test_auc,0.8\n"
    table = PublishedTable(write(tmp_path / "truth.csv", "method,flag,metric,mean\n" + rows))
    for flag, value in ((True, 0.9), (False, 0.8)):
        assert find(table, "Toy", "M", {"flag": flag}, "test_auc").printed == value


def test_two_fitting_rows_are_an_error_not_a_guess(tmp_path: Path) -> None:
    rows = "Toy,M,4,test_auc,0.9\nToy,M,8,test_auc,0.8\n"
    table = PublishedTable(write(tmp_path / "two.csv", "dataset,method,p,metric,mean\n" + rows))
    with pytest.raises(UserError, match="lines 2, 3 all fit Toy, q = 1, method = M"):
        find(table, "Toy", "M", {"q": 1}, "test_auc")
    number = find(table, "Toy", "M", {"p": 8.0}, "test_auc")
    assert number.printed == 0.8


def test_a_remark_on_all_rows_is_no_doubt_about_any_and_one_on_some_is(tmp_path: Path) -> None:
    path, head = tmp_path / "own.csv", "method,metric,mean,note\n"
    for notes, doubts in (("r r", ["", ""]), ("r s", ["r", "s"]), ("mean and std of r,s", ["", "s"])):
        first, second = notes.split("," if "," in notes else " ")
        path.write_text(f"{head}a,test_auc,0.9,{first}\nb,test_auc,0.8,{second}\n")
        assert [number.doubt for number in PublishedTable(path).values] == doubts
