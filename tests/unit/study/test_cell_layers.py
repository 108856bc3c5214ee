"""Which layer of the configuration wins, and which settings change nothing on a dataset and stand in no name."""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import SCALE, rewrite, write_yaml

from fedbench.data import labels, partitions
from fedbench.errors import UserError
from fedbench.report.page.view import setting_text
from fedbench.spec import ImbalanceSpec, LabelSpec, PartitionSpec, RunSpec
from fedbench.study import layers
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_config, load_paper, load_scale, paper_keys
from fedbench.study.layers import merged
from fedbench.study.plan import Plan
from fedbench.study.unread import read_parts, unread

SETTING = {"p": 4, "imratio": 0.2}


def run(
    method: str = "Plain", scale: str = "demo", dataset: str = "Digits", at: Any = None, **options: Any
) -> RunSpec:
    return resolve(load_paper("toy"), load_scale(scale), dataset, SETTING | (at or {}), method, **options)


def scaled(**changes: Any) -> None:
    scale = copy.deepcopy(SCALE)
    scale["papers"]["toy"] |= changes
    write_yaml(Path("config/scales/demo.yaml"), scale)


@pytest.mark.usefixtures("project")
class TestLayers:
    def test_later_layers_win(self) -> None:
        plain = run()
        assert plain.train.batch_size == 16, "dataset over defaults"
        assert plain.train.iterations == 8 and plain.train.epochs is None, "scale over defaults"
        assert plain.train.period == 4 and plain.data.imbalance.imratio == 0.2, "setting"
        assert plain.data.labels.rule == "halves" and plain.data.clients == 3, "defaults stay"
        assert plain.params == {"lr": 0.1} and plain.method == "fedavg"
        assert run("Plain_too").train.weight_decay == 0.01, "method"
        assert run(scale="paper").train.epochs == 10

        train = {"epochs": None, "iterations": 8, "batch_size": 4, "weight_decay": 0.5, "period": 1}
        scaled(train=train, per_dataset={"Digits": {"iterations": 12}})
        shortened = run("Plain_too").train
        assert (shortened.batch_size, shortened.weight_decay) == (4, 0.5), "scale over dataset and method"
        assert shortened.iterations == 12, "of a dataset"
        assert shortened.period == 4, "setting over scale"
        assert run(extra={"train": {"period": 2}}).train.period == 2, "what is given over all"
        rewrite(datasets=lambda part: part["Digits"].update({"fixed": {"train": {"period": 16}}}))
        assert run().train.period == 16, "fixed over setting"

    def test_tuned_values_win_over_the_papers_and_the_scale_and_belong_to_one_dataset(self) -> None:
        values = {"lr": 0.3, "train.weight_decay": 0.25, "train.iterations": 6}
        chosen = {"Proximal": {"mu": 7.0}, "Plain_too": values}
        write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": chosen})
        assert run("Proximal").params == {"lr": 0.1, "mu": 7.0} and run("Plain").params == {"lr": 0.1}
        assert run("Proximal", tuned={}).params == {"lr": 0.1, "mu": 0.1}
        assert run("Proximal", "paper", "Printed").params["mu"] == 0.1
        tuned = run("Plain_too")
        assert (tuned.params["lr"], tuned.train.weight_decay, tuned.train.iterations) == (0.3, 0.25, 6)
        assert run("Plain_too", tuned={}).train.iterations == 8
        with pytest.raises(UserError, match=r"train\.weight_decoy: .*'weight_decay'"):
            run(tuned={"train.weight_decoy": 1})

    def test_another_dataset_of_a_call_leaves_the_rules_for_the_classes_of_the_one_before(self) -> None:
        """A positive class was called "no", and samples were dropped, by the rules of another's data."""

        def data(**given: Any) -> Any:
            config = load_config(overrides={"set": {"data.dataset": "mnist", **given}})
            return Plan(config, "toy").cells("table1")[0].runs[0].data

        rewrite(defaults=lambda defaults: defaults["data"].update(sources=["cifar10"], tests="all"))
        plain = data()
        assert (plain.sources, plain.tests) == ((), "own")
        assert (plain.dataset, plain.labels.rule, plain.imbalance.rule) == ("mnist", "original", "none")
        assert plain.imbalance.imratio is None and plain.clients == 3
        told = data(**{"data.labels.rule": "halves"})
        assert told.labels.rule == "halves" and told.imbalance.rule == "none"

    def test_values_of_a_setting_stand_for_others_or_for_several_places(self) -> None:
        pieces = {3: {}, 9: {"data": {"clients": 9}}}
        several = {"sets": ["."], "default": 3, "label": "clients", "values": pieces}
        named = {"sets": ["data.imbalance.imratio"], "default": "rare", "label": "", "values": {"rare": 0.01}}
        rewrite(settings=lambda part: part.update({"n": several, "imratio": named}))
        runs = [run(at={"n": n, "imratio": "rare"}) for n in (3, 9)]
        assert [many.data.clients for many in runs] == [3, 9]
        assert runs[0].data.imbalance.imratio == 0.01
        with pytest.raises(UserError, match=r"unknown value of the setting n '10'.*Known: 3, 9"):
            run(at={"n": 10})

    def test_what_fits_no_run_is_named(self) -> None:
        for given, says in (
            ({"at": {"imratio": 1.5}}, "demo: data.imbalance.imratio: "),
            ({"dataset": "Digit"}, "dataset 'Digit'. Did you mean 'Digits'? Known: Digits, Printed"),
            ({"method": "Plane"}, "unknown method 'Plane'. Did you mean 'Plain'"),
        ):
            with pytest.raises(UserError, match=re.escape(says)):
                run(**given)

    def test_a_scale_names_only_datasets_that_there_are(self) -> None:
        for slip in ({"per_dataset": {"Digit": {"iterations": 1}}}, {"stand_in": "Digit"}):
            scaled(**slip)
            with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
                Plan(load_config(), "toy").cells("table1")


@pytest.mark.usefixtures("project")
class TestMethodsAtSettings:
    """``only``: a method has cells at some values of a setting; ``at``: what it does there of its own."""

    def test_a_method_has_cells_only_where_it_is_run(self) -> None:
        rewrite(methods=lambda part: part["Proximal"].update({"only": {"p": [4]}}))
        chosen = [(cell.setting["p"], cell.method) for cell in Plan(load_config(), "toy").cells("table1")]
        assert chosen == [
            (2, "Plain"), (2, "Plain_too"), (4, "Plain"), (4, "Proximal"), (4, "Plain_too"),
        ]  # fmt: skip

    def test_a_piece_of_a_method_wins_over_the_setting_and_not_over_what_is_fixed(self) -> None:
        at = {"p": {4: {"params": {"lr": 0.7}, "train": {"period": 5, "clip_norm": 1.0}}}}
        on_dataset = {"dataset": {"Digits": {"train": {"weight_decay": 0.3}}}}
        rewrite(
            methods=lambda part: part["Plain"].update({"at": at | on_dataset}),
            datasets=lambda part: part["Digits"].update({"fixed": {"train": {"clip_norm": 2.0}}}),
        )
        plain, other = run(), run(at={"p": 2})
        assert (plain.params["lr"], plain.train.period, plain.train.clip_norm) == (0.7, 5, 2.0)
        assert plain.train.weight_decay == 0.3, "at a dataset, too"
        assert (other.params["lr"], other.train.period) == (0.1, 2)
        assert run("Plain_too").train.period == 4

    def test_a_task_that_is_null_takes_that_of_all_away(self) -> None:
        rewrite(
            defaults=lambda part: part.update(task={"name": "detailed"}),
            methods=lambda part: part["Plain"].update(task=None),
        )
        other = run("Plain_too").task
        assert run().task is None and other is not None and other.name == "detailed"

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({"only": {"q": [4]}}, "Proximal: only: unknown setting 'q'"),
            ({"only": {"p": [3]}}, r"Proximal: only: p: unknown value '3'\. Known: 2, 4, 8\."),
            ({"at": {"p": {5: {}}}}, "Proximal: at: p: unknown value '5'"),
            ({"only": {"p": [8]}}, "table1: Proximal has only p 8, not 2, 4"),
            ({"grid": {"lr, train.period": [[1, 1]]}}, "Proximal: grid: train.period is what the setting p"),
            ({"grid": {"lr, mu": [[1, 1], [1]]}}, "methods.Proximal: grid: 'lr, mu' takes lists of 2 values"),
            ({"grid": {"lr, mu": [1, 2]}}, "methods.Proximal: grid: 'lr, mu' takes lists of 2 values"),
            ({"grid": {"lr": [0.1, 1, 1.0]}}, "methods.Proximal: grid: lr: 1 is listed twice"),
            ({"task": {"name": "x"}, "parameters": {}}, "methods.Proximal.parameters: unknown key"),
        ],
    )
    def test_slips_are_named(self, entry: dict[str, Any], message: str) -> None:
        rewrite(methods=lambda part: part["Proximal"].update(entry))
        with pytest.raises(UserError, match=message):
            load_paper("toy")


def test_a_call_takes_away_the_other_lengths_of_training_and_nothing_else() -> None:
    given = layers.given("train.rounds=2 params.lr=0.1,data.clients=3")
    assert given == {"train.rounds": 2, "params.lr": 0.1, "data.clients": 3}
    train = {"iterations": None, "epochs": None, "cycles": None, "rounds": 2}
    assert layers.overrides(given) == {"train": train, "params": {"lr": 0.1}, "data": {"clients": 3}}
    assert layers.overrides({"params.rounds": 2}) == {"params": {"rounds": 2}}, "of the same name"


def test_merging_is_key_by_key_and_none_removes() -> None:
    low = {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}
    high = {"a": {"y": [3], "w": None}, "b": None, "c": 5, "d": {"e": {"f": None, "g": 1}}}
    assert merged(low, high) == {"a": {"x": 1, "y": [3]}, "c": 5, "d": {"e": {"g": 1}}}
    assert merged({"c": 5}, {"c": {"z": 1}}) == {"c": {"z": 1}}
    assert low == {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}  # layers are not changed


PRINTED = {"p": 4, "imratio": 0.1}
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
    printed = Plan(load_config(), "localscgdam").cell("FashionMNIST", PRINTED, "CoDA")
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
