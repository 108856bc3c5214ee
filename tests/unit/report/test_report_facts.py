"""Tables of facts about the data: counted from what is prepared, held against print digit by digit."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_project, write_yaml

from fedbench.data.dataset import Dataset
from fedbench.data.datasets import digits
from fedbench.data.partition import load_partition, make_partition
from fedbench.data.prepared import prepare
from fedbench.data.summary import Counts
from fedbench.errors import UserError
from fedbench.report import facts, tables
from fedbench.report.document import Table
from fedbench.results.export import add_counts
from fedbench.results.shipped import read_facts
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan
from fedbench.workflow.inputs import Inputs

SPLITS = ["Training", "Validation", "Test"]
TABLE = {
    "title": "Facts", "kind": "facts", "datasets": ["Printed", "Digits"], "splits": SPLITS,
    "metrics": ["n_positive", "n_negative", "positive_percent"], "rows": ["dataset", "split"],
    "columns": ["metric"], "published": "facts.csv",
}  # fmt: skip
PRINTED = """dataset,method,split,metric,mean,std,note
Printed,,Training,n_positive,224,,
Digits,,Training,n_positive,{n_positive},,
Digits,,Training,positive_percent,{percent:.1f},,
Digits,,Test,n_negative,1,,printed with a slip
"""


@pytest.fixture(autouse=True)
def toy_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy paper in a folder of its own, which is the working directory."""
    write_project(tmp_path, tmp_path / "data")
    monkeypatch.chdir(tmp_path)


def made(
    printed: str = PRINTED.format(n_positive=1, percent=1),
    given: dict[str, Any] | None = None,
    **changes: Any,
) -> Table:
    paper = copy.deepcopy(PAPER)
    paper["datasets"]["Digits"]["data"]["validation"] = 0.1
    paper["tables"]["table2"] = TABLE | changes
    write_yaml(Path("config/papers/toy.yaml"), paper)
    folder = Path("published/toy")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "facts.csv").write_text(printed)
    return tables.table_of(Plan(load_config(overrides={"set": given}), "toy"), "table2")


def partitioned() -> dict[str, Any]:
    """Partition the digits as the table's rule says and return the summary."""
    made()
    setting = {"p": 4, "imratio": 0.2}
    run = resolve(load_paper("toy"), load_scale("demo"), "Digits", setting, "Plain")
    prepare("digits", load_config().data_dir)
    make_partition(run.data, 0, load_config().data_dir)
    return load_partition(run.data, 0, load_config().data_dir).summary


def test_counts_stand_beside_print_and_equal_means_equal_in_print() -> None:
    train = partitioned()["train"]
    n, positive = train["n"], train["class_counts"]["1"]
    table = made(PRINTED.format(n_positive=positive, percent=100 * positive / n))
    rows = table.rows.set_index(["dataset", "split", "metric"])
    assert rows.loc[("Digits", "Training", "n_positive"), ["value", "equal"]].tolist() == [positive, True]
    assert rows.loc[("Digits", "Training", "positive_percent"), "equal"], "in the one digit that is printed"
    assert rows.loc[("Digits", "Training", "positive_percent"), "value"] != pytest.approx(20, abs=1e-9)
    assert rows.loc[("Digits", "Test", "n_negative"), "equal"] is False
    assert rows.loc[("Digits", "Validation", "n_positive"), "value"] > 0
    assert rows.loc[("Digits", "Training", "n_negative"), "published"] == ""
    text = table.markdown()
    assert "= equal in the published digits" in text and "†: printed with a slip." in text and "1†" in text
    other = made(PRINTED.format(n_positive=positive + 1, percent=100 * positive / n + 0.1)).markdown()
    assert "−1 ≠" in other and "−0.1 ≠" in other
    assert "Not prepared here: Printed (" in text and "224" in table.csv()
    assert [[row.label for row in block.rows] for block in table.grid.blocks] == [SPLITS, SPLITS]
    assert table.forms().keys() == {"tex", "csv", "md", "json", "macros.tex"}


def test_the_whole_dataset_is_counted_before_anything_is_dropped() -> None:
    partitioned()
    table = made(published=None, splits=["all"], rows=["dataset"], metrics=["n_samples", "positive_ratio"])
    rows = table.rows.set_index(["dataset", "metric"])["value"]
    assert rows["Digits", "n_samples"] == 1797
    assert rows["Digits", "positive_ratio"] == pytest.approx(901 / 1797), "0 to 4 of scikit-learn's digits"


def test_labels_alone_may_be_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {str(digit): 10 * digit for digit in range(10)}
    monkeypatch.setattr(type(digits.dataset), "count_labels", lambda self, data_dir: counted)
    table: dict[str, Any] = {"published": None, "datasets": ["Digits"], "metrics": ["n_positive"]}
    alone = made(**table, splits=["all"], rows=["dataset"])
    assert alone.rows["value"].tolist() == [0 + 10 + 20 + 30 + 40]
    more = made(**table, splits=["all", "Test"], columns=[], rows=["dataset", "split"])
    cure = "Digits: `fedbench doctor` says what is needed."
    assert cure not in alone.notes and cure in more.notes
    assert Dataset.count_labels(digits.dataset, Path()) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": ["Testing"]}, "tables.table2.splits"),
        ({"rows": ["dataset"]}, "split takes several values"),
        ({"metrics": ["n_positives"]}, "unknown metric 'n_positives'. Did you mean 'n_positive'"),
    ],
)
def test_slips_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(**changes)


def test_what_a_call_sets_changes_the_data_and_is_said() -> None:
    """``--set data.validation=0.3`` holds more out: the partition that is counted, and asked for, is that one."""
    given = {"data.validation": 0.3}
    plain, table = made(), made(given=given)
    assert "Set for this call: data.validation = 0.3" in table.title
    assert "Set for" not in plain.title
    asked = Inputs(load_config(overrides={"set": given})).of_table("toy", "table2")
    wanted = {Path(path).stem for path in asked}
    assert wanted <= {*table.provenance["partitions"].values()}
    assert not wanted & {*plain.provenance["partitions"].values()}


def test_counts_that_came_with_the_repository_take_the_place_of_data_that_are_not_here() -> None:
    """Those of the same data rule alone; what is prepared here goes before, and a call may leave them out."""
    partitioned()
    counted = made()
    path = facts.export(Plan(load_config(), "toy"), "table2")
    assert path == Path("reproduced/facts.csv")
    shutil.rmtree("data")
    elsewhere = made()
    assert elsewhere.rows.equals(counted.rows) and counted.rows["value"].notna().any()
    assert any("Digits" in note and "reproduced/facts.csv" in note for note in elsewhere.notes)
    assert not any("Digits" in note and "doctor" in note for note in elsewhere.notes)
    plan = Plan(load_config(overrides={"shipped": False}), "toy")
    assert tables.table_of(plan, "table2").rows.query("dataset == 'Digits'")["value"].isna().all()
    other = path.read_text().replace(path.read_text().splitlines()[1].split(",")[3], "0" * 16)
    path.write_text(other)
    assert made().rows.query("dataset == 'Digits'")["value"].isna().all(), "of another rule"


def test_counts_of_data_are_replaced_by_those_of_the_same_rule_and_join_others() -> None:
    counted = {("A", "k1", "all"): Counts(3), ("B", "k2", "Test"): Counts(5, 2, 3)}
    path = add_counts("toy", counted)
    add_counts("toy", {("B", "k2", "Test"): Counts(7, 3, 4)})
    assert read_facts() == {("k1", "all"): Counts(3), ("k2", "Test"): Counts(7, 3, 4)}
    for slip in ("x", "3.5"):
        path.write_text(path.read_text().replace(",7,3,4", f",{slip},3,4"))
        with pytest.raises(UserError, match=r"facts\.csv .*`fedbench export`"):
            read_facts()
        path.write_text(path.read_text().replace(f",{slip},3,4", ",7,3,4"))
    path.write_text("key,n\n")
    with pytest.raises(UserError, match=r"facts\.csv .*column study"):
        read_facts()


def test_there_is_nothing_to_export_of_data_that_are_not_here() -> None:
    made()
    with pytest.raises(UserError, match="none of the data of toy/table2"):
        facts.export(Plan(load_config(), "toy"), "table2")
