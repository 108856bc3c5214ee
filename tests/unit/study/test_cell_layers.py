"""Which layer of the configuration wins, from defaults to what a call sets."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import SCALE, write_yaml
from toy_changes import rewrite

from fedbench.errors import UserError
from fedbench.study import layers
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.layers import merged
from fedbench.study.plan import Plan

SETTING = {"p": 4, "imratio": 0.2}


@pytest.mark.usefixtures("project")
class TestLayers:
    def cell(self, method: str = "Plain", scale: str = "demo", **options: Any) -> Any:
        return resolve(load_paper("toy"), load_scale(scale), "Digits", SETTING, method, **options)

    def test_later_layers_win(self) -> None:
        run = self.cell()
        assert run.train.batch_size == 16  # dataset over defaults
        assert run.train.iterations == 8 and run.train.epochs is None  # scale over defaults
        assert run.train.period == 4 and run.data.imbalance.imratio == 0.2  # setting
        assert run.data.labels.rule == "halves" and run.data.clients == 3  # defaults stay
        assert run.params == {"lr": 0.1} and run.method == "fedavg"
        assert self.cell("Plain_too").train.weight_decay == 0.01  # method
        assert self.cell(scale="paper").train.epochs == 10

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

    def test_scale_wins_over_dataset_and_method_and_per_dataset_over_scale(self) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"]["train"] |= {"batch_size": 4, "weight_decay": 0.5}
        write_yaml(Path("config/scales/demo.yaml"), scale)
        run = self.cell("Plain_too")
        assert run.train.batch_size == 4 and run.train.weight_decay == 0.5
        scale["papers"]["toy"]["per_dataset"] = {"Digits": {"iterations": 12}}
        write_yaml(Path("config/scales/demo.yaml"), scale)
        assert self.cell().train.iterations == 12

    @pytest.mark.parametrize("slip", [{"per_dataset": {"Digit": {"iterations": 1}}}, {"stand_in": "Digit"}])
    def test_a_scale_names_only_datasets_that_there_are(self, slip: dict[str, Any]) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"] |= slip
        write_yaml(Path("config/scales/demo.yaml"), scale)
        with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
            Plan(load_config(), "toy").cells("table1")

    def test_settings_win_over_scales_and_extras_over_all(self) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"]["train"]["period"] = 1
        write_yaml(Path("config/scales/demo.yaml"), scale)
        assert self.cell().train.period == 4
        assert self.cell(extra={"train": {"period": 2}}).train.period == 2

    def test_tuned_values_win_over_the_papers_and_belong_to_one_dataset(self) -> None:
        write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Proximal": {"mu": 7.0}}})
        assert self.cell("Proximal").params == {"lr": 0.1, "mu": 7.0}
        assert self.cell("Plain").params == {"lr": 0.1}
        assert self.cell("Proximal", tuned={}).params == {"lr": 0.1, "mu": 0.1}
        elsewhere = resolve(load_paper("toy"), load_scale("paper"), "Printed", SETTING, "Proximal")
        assert elsewhere.params["mu"] == 0.1

    def test_what_is_fixed_of_a_dataset_wins_over_settings(self) -> None:
        rewrite(datasets=lambda part: part["Digits"].update({"fixed": {"train": {"period": 16}}}))
        assert self.cell().train.period == 16

    def test_settings_can_stand_for_several_places(self) -> None:
        several = {
            "sets": ["."],
            "default": 3,
            "label": "clients",
            "values": {3: {}, 9: {"data": {"clients": 9}}},
        }
        rewrite(settings=lambda part: part.update({"n": several}))
        paper, scale = load_paper("toy"), load_scale("demo")
        runs = [resolve(paper, scale, "Digits", SETTING | {"n": n}, "Plain") for n in (3, 9)]
        assert [run.data.clients for run in runs] == [3, 9]
        with pytest.raises(UserError, match=r"unknown value of the setting n '10'.*Known: 3, 9"):
            resolve(paper, scale, "Digits", SETTING | {"n": 10}, "Plain")

    def test_values_of_a_setting_are_translated(self) -> None:
        named = {"sets": ["data.imbalance.imratio"], "default": "rare", "label": "", "values": {"rare": 0.01}}
        rewrite(settings=lambda part: part.update({"imratio": named}))
        run = resolve(
            load_paper("toy"), load_scale("demo"), "Digits", {"p": 4, "imratio": "rare"}, "Plain", 0
        )
        assert run.data.imbalance.imratio == 0.01

    @pytest.mark.parametrize("value", [0, 1, -0.1, 1.5])
    def test_settings_outside_their_range_are_named(self, value: float) -> None:
        with pytest.raises(UserError, match=r"^toy/Digits/Plain at scale demo: data\.imbalance\.imratio: "):
            resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING | {"imratio": value}, "Plain")
        with pytest.raises(UserError, match=r"train\.period: Input should be greater than or equal to 1"):
            resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING | {"p": 0}, "Plain")

    def test_unknown_datasets_and_methods_are_named(self) -> None:
        paper, scale = load_paper("toy"), load_scale("demo")
        with pytest.raises(
            UserError, match=r"unknown dataset 'Digit'\. Did you mean 'Digits'\? Known: Digits, Printed"
        ):
            resolve(paper, scale, "Digit", SETTING, "Plain")
        with pytest.raises(UserError, match=r"unknown method 'Plane'\. Did you mean 'Plain'"):
            resolve(paper, scale, "Digits", SETTING, "Plane")


@pytest.mark.usefixtures("project")
class TestMethodsAtSettings:
    """``only``: a method has cells at some values of a setting; ``at``: what it does there of its own."""

    def test_a_method_has_cells_only_where_it_is_run(self) -> None:
        rewrite(methods=lambda part: part["Proximal"].update({"only": {"p": [4]}}))
        chosen = {cell.name for cell in Plan(load_config(), "toy").cells("table1")}
        assert chosen == {
            f"toy/Digits/p{p}_imratio0.2/{method}"
            for p, method in ((2, "Plain"), (4, "Plain"), (2, "Plain_too"), (4, "Plain_too"), (4, "Proximal"))
        }

    def test_a_piece_of_a_method_wins_over_the_setting_and_not_over_what_is_fixed(self) -> None:
        at = {"p": {4: {"params": {"lr": 0.7}, "train": {"period": 5, "clip_norm": 1.0}}}}
        on_dataset = {"dataset": {"Digits": {"train": {"weight_decay": 0.3}}}}
        rewrite(
            methods=lambda part: part["Plain"].update({"at": at | on_dataset}),
            datasets=lambda part: part["Digits"].update({"fixed": {"train": {"clip_norm": 2.0}}}),
        )
        paper, scale = load_paper("toy"), load_scale("demo")
        run = resolve(paper, scale, "Digits", SETTING, "Plain")
        assert (run.params["lr"], run.train.period, run.train.clip_norm) == (0.7, 5, 2.0)
        assert run.train.weight_decay == 0.3, "at a dataset, too"
        other = resolve(paper, scale, "Digits", SETTING | {"p": 2}, "Plain")
        assert (other.params["lr"], other.train.period) == (0.1, 2)
        assert resolve(paper, scale, "Digits", SETTING, "Plain_too").train.period == 4

    def test_a_task_that_is_null_takes_that_of_all_away(self) -> None:
        rewrite(
            defaults=lambda part: part.update(task={"name": "detailed"}),
            methods=lambda part: part["Plain"].update(task=None),
        )
        paper, scale = load_paper("toy"), load_scale("demo")
        plain, other = (
            resolve(paper, scale, "Digits", SETTING, name).task for name in ("Plain", "Plain_too")
        )
        assert plain is None and other is not None and other.name == "detailed"

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({"only": {"q": [4]}}, "Proximal: only: unknown setting 'q'"),
            ({"only": {"p": [3]}}, r"Proximal: only: p: unknown value '3'\. Known: 2, 4, 8\."),
            ({"at": {"p": {5: {}}}}, "Proximal: at: p: unknown value '5'"),
            ({"only": {"p": [8]}}, "table1: Proximal has only p 8, not 2, 4"),
            ({"grid": {"lr, train.period": [[1, 1]]}}, "Proximal: grid: train.period is what the setting p"),
            ({"task": {"name": "x"}, "parameters": {}}, "methods.Proximal.parameters: unknown key"),
        ],
    )
    def test_slips_are_named(self, entry: dict[str, Any], message: str) -> None:
        rewrite(methods=lambda part: part["Proximal"].update(entry))
        with pytest.raises(UserError, match=message):
            load_paper("toy")

    def test_tuned_values_with_dots_go_to_their_place_and_win_over_the_scale(self) -> None:
        values = {"lr": 0.3, "train.weight_decay": 0.25, "train.iterations": 6}
        write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Plain": values}})
        run = resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain")
        assert (run.params, run.train.weight_decay, run.train.iterations) == ({"lr": 0.3}, 0.25, 6)
        wrong = resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain", tuned={})
        assert wrong.train.iterations == 8
        with pytest.raises(
            UserError, match=r"train\.weight_decoy: unknown key\. Did you mean 'weight_decay'"
        ):
            resolve(
                load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain", 0,
                tuned={"train.weight_decoy": 1},
            )  # fmt: skip


def test_a_call_takes_away_the_other_lengths_of_training_and_nothing_else() -> None:
    given = layers.given("train.rounds=2 params.lr=0.1,data.clients=3")
    assert given == {"train.rounds": 2, "params.lr": 0.1, "data.clients": 3}
    away = dict.fromkeys(("iterations", "epochs", "cycles"))
    assert layers.overrides(given) == {
        "train": {**away, "rounds": 2}, "params": {"lr": 0.1}, "data": {"clients": 3},
    }  # fmt: skip
    assert layers.overrides({"params.rounds": 2}) == {"params": {"rounds": 2}}, (
        "a hyper-parameter of that name"
    )


def test_merging_is_key_by_key_and_none_removes() -> None:
    low = {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}
    high = {"a": {"y": [3], "w": None}, "b": None, "c": 5, "d": {"e": {"f": None, "g": 1}}}
    assert merged(low, high) == {"a": {"x": 1, "y": [3]}, "c": 5, "d": {"e": {"g": 1}}}
    assert merged({"c": 5}, {"c": {"z": 1}}) == {"c": {"z": 1}}
    assert low == {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}  # layers are not changed
