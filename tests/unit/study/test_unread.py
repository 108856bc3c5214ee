"""Settings that change nothing on a dataset are in no name, label or folder of its cells; keys of runs keep them."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import rewrite

from fedbench.data import labels, partitions
from fedbench.errors import UserError
from fedbench.report.page.view import setting_text
from fedbench.spec import ImbalanceSpec, LabelSpec, PartitionSpec
from fedbench.study.configuration import load_config, load_paper, paper_keys
from fedbench.study.plan import Plan
from fedbench.study.unread import read_parts, unread

SETTING = {"p": 4, "imratio": 0.1}
HEART = {"p": 4, "imratio": 0.1, "training": "federated"}
OTHERS: dict[str, Any] = {
    "positive_half": "second", "imratio": 0.3, "rho": 7.0, "minority": (0, 1), "share": 0.4,
}  # fmt: skip
"""Another value of each field of labels and imbalance than the tests begin with."""


def test_hearts_cells_do_not_name_a_share_of_positives_that_nothing_drops() -> None:
    asked = Plan(load_config(), "hospitals")
    cell = asked.cell("Heart", HEART, "CoDA")
    assert cell.name == "hospitals/Heart/p4/CoDA" and cell.path.parts[-2] == "p4"
    assert setting_text(asked, "Heart", HEART) == "p = 4"
    assert cell.runs[0].data.imbalance.imratio == 0.1, "it is part of the key of shipped runs"
    other = asked.cell("Heart", HEART | {"imratio": 0.2}, "CoDA")
    assert other.setting_label == "p4_imratio0.2", "another value than the default tells cells apart"
    printed = Plan(load_config(), "localscgdam").cell("FashionMNIST", SETTING, "CoDA")
    assert printed.setting_label == "p4_imratio0.1"


@pytest.mark.usefixtures("project")
def test_a_table_that_varies_what_changes_nothing_is_an_error() -> None:
    rule = {"dataset": "digits", "imbalance": {"rule": "none"}}
    varied = {"settings": {"imratio": [0.1, 0.3]}, "additions": ["Digits"]}  # which has other numbers for it
    changes: dict[str, Any] = {"datasets": lambda part: part["Printed"].update(data=rule)}
    rewrite(**changes, tables=lambda part: part["table1"].update(varied))
    load_paper("toy")
    rewrite(**changes, tables=lambda part: part["table1"].update(varied | {"additions": []}))
    with pytest.raises(UserError, match="table1: settings: imratio changes nothing on Printed"):
        load_paper("toy")


@pytest.mark.usefixtures("project")
def test_what_a_dataset_fixes_changes_nothing_unless_a_method_does() -> None:
    fixed = {"datasets": lambda part: part["Digits"].update({"fixed": {"train": {"period": 3}}})}
    rewrite(**fixed)
    assert unread(load_paper("toy"), "Digits") == {"p"}
    at = {"p": {2: {"params": {"lr": 0.7}}}}
    rewrite(**fixed, methods=lambda part: part["Plain"].update({"at": at}))
    assert unread(load_paper("toy"), "Digits") == set()


def what_is_read(asked: Plan, dataset: str, setting: dict[str, Any], method: str) -> str:
    """Return what a run reads of its configuration, empty where a value fits no cell of the dataset."""
    with contextlib.suppress(UserError):
        return str(read_parts(asked.cell(dataset, setting, method).runs[0].model_dump()))
    return ""


@pytest.mark.parametrize("study", paper_keys())
def test_a_setting_is_left_out_exactly_where_no_value_of_it_changes_what_a_run_reads(study: str) -> None:
    """Every shipped study, dataset and setting, by the runs themselves."""
    asked = Plan(load_config(), study)
    paper = asked.study
    default = {name: entry.default for name, entry in paper.settings.items()}
    shown = {name: {entry.default, *entry.values} for name, entry in paper.settings.items()}
    for name, values in (pair for spec in paper.targets.values() for pair in spec.settings.items()):
        shown[name] |= {*values}
    apart = paper.tune.each if paper.tune else {}
    for dataset, (name, values) in itertools.product(paper.datasets, shown.items()):
        numbers = [
            len({what_is_read(asked, dataset, default | {name: value}, method) for value in values} - {""})
            for method in [*paper.methods][:3]
        ]
        if name in unread(paper, dataset):
            assert {*numbers} == {1}, (dataset, name)
        elif len(values) > 1 and name not in apart:
            assert max(numbers) > 1, (dataset, name)


def test_partition_rules_read_what_the_specification_says() -> None:
    folder = Path(partitions.__file__).parent
    for path in folder.glob("[a-z]*.py"):
        fields = {*re.findall(r"\bspec\.(\w+)", path.read_text())} - {"options", "of"}
        assert fields == {*PartitionSpec.reads[path.stem]}, path.stem


@pytest.mark.parametrize("rule", ImbalanceSpec.reads)
def test_imbalance_rules_read_what_the_specification_says(rule: str) -> None:
    given = np.repeat([0, 1, 2, 3], 500)
    binary = given if rule == "minority" else (given > 1).astype(int)

    def kept(**fields: Any) -> list[int]:
        base = {"imratio": 0.2, "rho": 5.0, "minority": (1,), "share": 0.5}
        spec = ImbalanceSpec.model_validate({"rule": rule, **base, **fields})
        return labels.keep(binary, spec, np.random.default_rng(0), given).tolist()

    for name in ("imratio", "rho", "minority", "share"):
        assert (kept(**{name: OTHERS[name]}) != kept()) == (name in ImbalanceSpec.reads[rule]), name


@pytest.mark.parametrize("rule", ["original", "halves", "random_halves"])
def test_label_rules_read_what_the_specification_says(rule: str) -> None:
    def relabelled(half: str) -> list[int]:
        spec = LabelSpec.model_validate({"rule": rule, "positive_half": half})
        return labels.relabel(np.arange(4), ["a", "b", "c", "d"], spec).tolist()

    assert (relabelled("first") != relabelled("second")) == ("positive_half" in LabelSpec.reads[rule])
