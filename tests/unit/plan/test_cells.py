"""From configuration to cells: order of layers, counts of the papers' tables, names, mistakes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, SCALE, write_yaml

from fedbench.errors import UserError
from fedbench.plan import configuration
from fedbench.plan.cells import cells_of, matching, resolve
from fedbench.plan.configuration import load_config, load_paper, load_scale, merged

CONFIG = Path(__file__).parents[3] / "config"
SETTING = {"p": 4, "imratio": 0.2}


PLAIN = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
CLAIM = {"says": "Good", "in": ["table1"], "better": PLAIN}
WINDOW: dict[str, Any] = {
    "says": "Long",
    "in": ["table1"],
    "ratio": PLAIN | {"largest": "p", "within": 0.01, "at_least": 4},
}


def rewrite(**parts: Any) -> None:
    """Change parts of the toy paper; a part that is a function gets a copy to change."""
    paper = copy.deepcopy(PAPER)
    for name, part in parts.items():
        if callable(part):
            part(paper.setdefault(name, []))
        else:
            paper[name] = part
    write_yaml(Path("config/papers/toy.yaml"), paper)


class TestPapersAsShipped:
    @pytest.mark.parametrize(
        ("paper", "target", "count"),
        [
            ("localscgdam", "table1", 6 * 5 * 3),
            ("localscgdam", "figure1", 6 * 5),
            ("localscgdam", "figure2", 6 * 5),
            ("localscgdam", "figure3", 6 * 5),
            ("localscgdam", "figure4", 3 * 5),
            ("localscgdam", "figure5", 3),
            ("climb", "table1", 2 * 2 * 2 * 2 * 4),
            ("climb", "table2", 2 * 2 * 2 * 3 * 4),
        ],
    )
    def test_tables_and_figures_have_the_papers_cells(self, paper: str, target: str, count: int) -> None:
        config = load_config(CONFIG / "config.yaml", {"scale": "paper"})
        found = cells_of(config, paper, target, CONFIG)
        assert len(found) == len({cell.name for cell in found}) == count
        keys = {run.key for cell in found for run in cell.runs}
        assert len(keys) == 3 * count  # three seeds each, no two alike
        assert all(cell.scale == "paper" and len(cell.runs) == 3 for cell in found)

    def test_figures_share_their_cells_with_the_table(self) -> None:
        config = load_config(CONFIG / "config.yaml", {"scale": "paper"})
        table = {cell.name for cell in cells_of(config, "localscgdam", "table1", CONFIG)}
        for figure in ("figure1", "figure2", "figure3"):
            assert {cell.name for cell in cells_of(config, "localscgdam", figure, CONFIG)} <= table
        everything = cells_of(config, "localscgdam", None, CONFIG)
        assert len(everything) == 90 + 15 + 2  # figure 5 adds SCAFFOLD and FedProx

    @pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
    @pytest.mark.parametrize("paper", ["localscgdam", "climb"])
    def test_every_cell_of_every_scale_resolves(self, paper: str, scale: str) -> None:
        from fedbench.algorithms import make

        config = load_config(CONFIG / "config.yaml", {"scale": scale})
        found = cells_of(config, paper, None, CONFIG)
        assert found
        for cell in found:
            make(cell.runs[0].method, cell.runs[0].params)

    def test_localscgdams_protocol(self) -> None:
        config = load_config(CONFIG / "config.yaml", {"scale": "paper"})
        for cell in cells_of(config, "localscgdam", "table1", CONFIG):
            run = cell.runs[0]
            assert run.data.clients == 4 and run.train.period == cell.setting["p"] and run.train.epochs == 100
            assert run.train.batch_size == {"STL10": 8, "Melanoma": 16}.get(cell.dataset, 32)
            if cell.dataset != "Melanoma":
                assert run.data.imbalance.imratio == 0.1 and run.data.labels.positive_half == "first"
            expected = {"FashionMNIST": "cnn", "Melanoma": "densenet121"}.get(cell.dataset, "resnet20")
            assert run.network.name == expected


@pytest.mark.usefixtures("project")
class TestLayers:
    def one(self, method: str = "Plain", scale: str = "demo", **options: Any) -> Any:
        return resolve(load_paper("toy"), load_scale(scale), "Digits", SETTING, method, 3, **options)

    def test_later_layers_win(self) -> None:
        run = self.one()
        assert run.train.batch_size == 16  # dataset over defaults
        assert run.train.iterations == 8 and run.train.epochs is None  # scale over defaults
        assert run.train.period == 4 and run.data.imbalance.imratio == 0.2  # setting
        assert run.data.labels.rule == "halves" and run.data.clients == 3  # defaults stay
        assert run.params == {"lr": 0.1} and run.method == "fedavg" and run.seed == 3
        assert self.one("Plain_too").train.weight_decay == 0.01  # method
        assert self.one(scale="paper").train.epochs == 10

    def test_scale_wins_over_dataset_and_method_and_per_dataset_over_scale(self) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"]["train"] |= {"batch_size": 4, "weight_decay": 0.5}
        write_yaml(Path("config/scales/demo.yaml"), scale)
        run = self.one("Plain_too")
        assert run.train.batch_size == 4 and run.train.weight_decay == 0.5
        scale["papers"]["toy"]["per_dataset"] = {"Digits": {"iterations": 12}}
        write_yaml(Path("config/scales/demo.yaml"), scale)
        assert self.one().train.iterations == 12

    @pytest.mark.parametrize("slip", [{"per_dataset": {"Digit": {"iterations": 1}}}, {"stand_in": "Digit"}])
    def test_a_scale_names_only_datasets_that_there_are(self, slip: dict[str, Any]) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"] |= slip
        write_yaml(Path("config/scales/demo.yaml"), scale)
        with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
            cells_of(load_config(), "toy", "table1")

    def test_settings_win_over_scales_and_extras_over_all(self) -> None:
        scale = copy.deepcopy(SCALE)
        scale["papers"]["toy"]["train"]["period"] = 1
        write_yaml(Path("config/scales/demo.yaml"), scale)
        assert self.one().train.period == 4
        assert self.one(extra={"train": {"period": 2}}).train.period == 2

    def test_tuned_values_win_over_the_papers_and_belong_to_one_dataset(self) -> None:
        write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Proximal": {"mu": 7.0}}})
        assert self.one("Proximal").params == {"lr": 0.1, "mu": 7.0}
        assert self.one("Plain").params == {"lr": 0.1}
        assert self.one("Proximal", tuned={}).params == {"lr": 0.1, "mu": 0.1}
        elsewhere = resolve(load_paper("toy"), load_scale("paper"), "Printed", SETTING, "Proximal", 0)
        assert elsewhere.params["mu"] == 0.1

    def test_what_is_fixed_of_a_dataset_wins_over_settings(self) -> None:
        rewrite(datasets=lambda part: part["Digits"].update({"fixed": {"train": {"period": 16}}}))
        assert self.one().train.period == 16

    def test_settings_can_stand_for_several_places(self) -> None:
        several = {
            "sets": ["."],
            "default": 3,
            "label": "clients",
            "values": {3: {}, 9: {"data": {"clients": 9}}},
        }
        rewrite(settings=lambda part: part.update({"n": several}))
        paper, scale = load_paper("toy"), load_scale("demo")
        runs = [resolve(paper, scale, "Digits", SETTING | {"n": n}, "Plain", 0) for n in (3, 9)]
        assert [run.data.clients for run in runs] == [3, 9]
        with pytest.raises(UserError, match=r"unknown value of the setting n '10'.*Known: 3, 9"):
            resolve(paper, scale, "Digits", SETTING | {"n": 10}, "Plain", 0)

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
            resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING | {"imratio": value}, "Plain", 0)
        with pytest.raises(UserError, match=r"train\.period: Input should be greater than or equal to 1"):
            resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING | {"p": 0}, "Plain", 0)

    def test_unknown_datasets_and_methods_are_named(self) -> None:
        paper, scale = load_paper("toy"), load_scale("demo")
        with pytest.raises(
            UserError, match=r"unknown dataset 'Digit'\. Did you mean 'Digits'\? Known: Digits, Printed"
        ):
            resolve(paper, scale, "Digit", SETTING, "Plain", 0)
        with pytest.raises(UserError, match=r"unknown method 'Plane'\. Did you mean 'Plain'"):
            resolve(paper, scale, "Digits", SETTING, "Plane", 0)


@pytest.mark.usefixtures("project")
class TestMethodsAtSettings:
    """``only``: a method has cells at some values of a setting; ``at``: what it does there of its own."""

    def test_a_method_has_cells_only_where_it_is_run(self) -> None:
        rewrite(methods=lambda part: part["Proximal"].update({"only": {"p": [4]}}))
        found = {cell.name for cell in cells_of(load_config(), "toy", "table1")}
        assert found == {
            f"toy/Digits/p{p}_imratio0.2/{method}"
            for p, method in (
                (2, "Plain"),
                (4, "Plain"),
                (2, "Plain_too"),
                (4, "Plain_too"),
                (4, "Proximal"),
            )
        }

    def test_a_piece_of_a_method_wins_over_the_setting_and_not_over_what_is_fixed(self) -> None:
        at = {"p": {4: {"params": {"lr": 0.7}, "train": {"period": 5, "clip_norm": 1.0}}}}
        rewrite(
            methods=lambda part: part["Plain"].update({"at": at}),
            datasets=lambda part: part["Digits"].update({"fixed": {"train": {"clip_norm": 2.0}}}),
        )
        paper, scale = load_paper("toy"), load_scale("demo")
        run = resolve(paper, scale, "Digits", SETTING, "Plain", 0)
        assert (run.params["lr"], run.train.period, run.train.clip_norm) == (0.7, 5, 2.0)
        other = resolve(paper, scale, "Digits", SETTING | {"p": 2}, "Plain", 0)
        assert (other.params["lr"], other.train.period) == (0.1, 2)
        assert resolve(paper, scale, "Digits", SETTING, "Plain_too", 0).train.period == 4

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
        run = resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain", 0)
        assert (run.params, run.train.weight_decay, run.train.iterations) == ({"lr": 0.3}, 0.25, 6)
        wrong = resolve(load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain", 0, tuned={})
        assert wrong.train.iterations == 8
        with pytest.raises(
            UserError, match=r"train\.weight_decoy: unknown key\. Did you mean 'weight_decay'"
        ):
            resolve(
                load_paper("toy"), load_scale("demo"), "Digits", SETTING, "Plain", 0,
                tuned={"train.weight_decoy": 1},
            )  # fmt: skip


@pytest.mark.usefixtures("project")
def test_a_table_says_which_of_our_own_datasets_enter_it() -> None:
    more = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
    rewrite(
        datasets=lambda part: part.update({"More": more}),
        tables=lambda part: part["table1"].update({"additions": ["More"]}),
    )
    config = load_config(overrides={"datasets": ["Digits", "More"]})
    assert {cell.dataset for cell in cells_of(config, "toy", "table1")} == {"More"}
    rewrite(datasets=lambda part: part.update({"More": more}))
    assert {cell.dataset for cell in cells_of(config, "toy", "table1")} == {"Digits", "More"}
    rewrite(tables=lambda part: part["table1"].update({"additions": ["Mare"]}))
    with pytest.raises(UserError, match="table1: additions: unknown dataset 'Mare'"):
        load_paper("toy")


def test_merging_is_key_by_key_and_none_removes() -> None:
    low = {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}
    high = {"a": {"y": [3], "w": None}, "b": None, "c": 5, "d": {"e": {"f": None, "g": 1}}}
    assert merged(low, high) == {"a": {"x": 1, "y": [3]}, "c": 5, "d": {"e": {"g": 1}}}
    assert merged({"c": 5}, {"c": {"z": 1}}) == {"c": {"z": 1}}
    assert low == {"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}}  # layers are not changed


@pytest.mark.usefixtures("project")
class TestCells:
    def test_names_paths_and_keys(self) -> None:
        found = cells_of(load_config(), "toy", "table1")
        assert [cell.name for cell in found] == [
            f"toy/Digits/p{p}_imratio0.2/{method}"
            for p in (2, 4)
            for method in ("Plain", "Proximal", "Plain_too")
        ]
        assert found[0].path == Path("results/cells/demo/toy/Digits/p2_imratio0.2/Plain.json")
        assert [run.seed for run in found[0].runs] == [0, 1]
        other = cells_of(load_config(overrides={"seeds": [0, 2]}), "toy", "table1")
        assert found[0].key != other[0].key and found[0].runs[0].key == other[0].runs[0].key

    def test_what_a_user_edits_changes_no_keys_but_seeds_and_scale(self) -> None:
        def keys(**options: Any) -> list[str]:
            return [cell.key for cell in cells_of(load_config(overrides=options), "toy", "table1")]

        same = {
            "device": "auto",
            "client_chunk": 2,
            "compile": True,
            "data_dir": "x",
            "mirror": "y",
            "tolerance": 0.5,
        }
        assert keys() == keys(**same)
        assert keys() != keys(seeds="5")

    def test_a_table_runs_its_own_datasets_and_our_additions(self) -> None:
        config = load_config(overrides={"datasets": "Printed,Digits"})
        assert {cell.dataset for cell in cells_of(config, "toy", "table1")} == {"Printed", "Digits"}
        assert {cell.dataset for cell in cells_of(config, "toy", "figure1")} == {
            "Printed"
        }  # no stand-in needed
        assert {cell.dataset for cell in cells_of(load_config(), "toy", "figure1")} == {
            "Digits"
        }  # it stands in
        with pytest.raises(UserError, match="unknown dataset of toy 'digits'"):
            cells_of(load_config(overrides={"datasets": "digits"}), "toy", "table1")

    def test_all_of_a_paper_is_each_cell_once(self) -> None:
        everything = cells_of(load_config(), "toy")
        assert len(everything) == len({cell.name for cell in everything}) == 6 + 1  # figure 1 adds p = 8

    def test_patterns(self) -> None:
        found = cells_of(load_config(), "toy", "table1")
        exact = matching(found, "toy/Digits/p2_imratio0.2/Plain")
        assert [cell.method for cell in exact] == ["Plain"]  # and not Plain_too with it
        assert [cell.method for cell in matching(found, "*/p2_*/Pla*")] == ["Plain", "Plain_too"]
        assert len(matching(found, "Proximal")) == 2 and len(matching(found, "*")) == 6
        with pytest.raises(UserError, match=r"no cell matches 'nothing'; `fedbench list`"):
            matching(found, "nothing")

    def test_unknown_targets_are_named(self) -> None:
        with pytest.raises(
            UserError, match=r"unknown table or figure of toy 'tabel1'\. Did you mean 'table1'"
        ):
            cells_of(load_config(), "toy", "tabel1")


@pytest.mark.usefixtures("project")
class TestConfig:
    def test_overrides_win_and_null_keeps_the_file(self) -> None:
        config = load_config(overrides={"scale": "paper", "paper": None, "seeds": 3, "datasets": "A, B"})
        assert (config.scale, config.paper, config.seeds, config.datasets) == (
            "paper",
            "toy",
            [3],
            ["A", "B"],
        )
        assert load_config(overrides={"seeds": "0,1"}).seeds == [0, 1]

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"scal": "demo"}, r"unknown key of the configuration 'scal'\. Did you mean 'scale'\?"),
            ({"device": "gpu"}, "device: Input should be 'auto', 'cpu' or 'cuda'"),
            ({"seeds": "0,x"}, "seeds: '0,x' is not a list of whole numbers"),
            ({"seeds": [0, 0]}, "seeds: a seed is given twice"),
            ({"seeds": []}, "seeds: "),
            ({"seeds": [-1]}, "seeds"),
            ({"client_chunk": 0}, "client_chunk: Input should be greater than or equal to 1"),
            ({"tolerance": -1}, "tolerance"),
        ],
    )
    def test_mistakes_are_named(self, options: dict[str, Any], says: str) -> None:
        with pytest.raises(UserError, match=says):
            load_config(overrides=options)

    def test_missing_and_broken_files_are_named(self) -> None:
        with pytest.raises(UserError, match=r"unknown paper 'toys'\. Did you mean 'toy'\?"):
            load_paper("toys")
        with pytest.raises(
            UserError, match=r"unknown scale 'deom'\. Did you mean 'demo'\? Known: demo, paper"
        ):
            load_scale("deom")
        Path("config/config.yaml").write_text("scale: [demo")
        with pytest.raises(UserError, match=r"config/config\.yaml is not valid YAML"):
            load_config()
        Path("config/config.yaml").unlink()
        with pytest.raises(UserError, match=r"config/config\.yaml does not exist; run fedbench from"):
            load_config()

    @pytest.mark.parametrize(
        ("part", "change", "says"),
        [
            (
                "tables",
                lambda t: t["table1"].update(datasets=["Digit"]),
                "table1: unknown dataset 'Digit'.*'Digits'",
            ),
            ("tables", lambda t: t["table1"].update(methods=["Plaine"]), "table1: unknown method 'Plaine'"),
            ("figures", lambda f: f["figure1"].update(settings={"q": [1]}), "figure1: unknown setting 'q'"),
            (
                "tables",
                lambda t: t["table1"].update(metric=["x"]),
                r"tables\.table1\.metric: unknown key.*'metrics'",
            ),
            (
                "tables",
                lambda t: t["table1"].update(metrics=["test_overal_accuracy"]),
                r"table1\.metrics.*unknown metric 'test_overal_accuracy'\. Did you mean 'test_overall_accuracy'",
            ),
            (
                "tables",
                lambda t: t["table1"].update(metrics=["tset_auc"]),
                "'tset_auc'. Did you mean 'test_auc'",
            ),
            ("tables", lambda t: t["table1"].update(metrics=["auc"]), "unknown metric 'auc'"),
            ("figures", lambda f: f["figure1"].update(metrics=["test_uac"]), "unknown metric.*'test_auc'"),
            (
                "claims",
                lambda c: c.append(CLAIM | {"in": ["tabel1"]}),
                "unknown table or figure 'tabel1'.*'table1'",
            ),
            (
                "claims",
                lambda c: c.append(CLAIM | {"better": PLAIN | {"method": "Plane"}}),
                r"claims: 1 \(Good\): unknown method 'Plane'.*'Plain'",
            ),
            (
                "claims",
                lambda c: c.append(CLAIM | {"better": PLAIN | {"than": ["Plane"]}}),
                "unknown method 'Plane'.*'Plain'",
            ),
            (
                "claims",
                lambda c: c.append(CLAIM | {"better": PLAIN | {"metric": "test_pa"}}),
                "claims.*unknown metric 'test_pa'",
            ),
            ("claims", lambda c: c.append(CLAIM | {"only": {"q": 1}}), "claims: 1.*unknown setting 'q'"),
            ("claims", lambda c: c.append(CLAIM | {"only": {"p": 5}}), "claims: 1.*unknown value of p '5'"),
            (
                "claims",
                lambda c: c.append(WINDOW),
                "largest needs within, of and metric",
            ),
            (
                "claims",
                lambda c: c.append(WINDOW | {"ratio": WINDOW["ratio"] | {"of": 5}}),
                "claims: 1 .Long.: unknown value of p '5'",
            ),
            (
                "claims",
                lambda c: c.append(CLAIM | {"equal": PLAIN}),
                r"claims\.0\.equal\.margin: Field required",
            ),
            (
                "claims",
                lambda c: c.append(CLAIM | {"equal": PLAIN | {"margin": 0.1}}),
                "give exactly one of better, no_worse, equal, trend, ratio, exists",
            ),
            (
                "claims",
                lambda c: c.append(
                    {
                        "says": "x",
                        "in": "table1",
                        "exists": {"where": "max(other) < 1", "so": "1 > 0", "metric": "test_auc"},
                    }
                ),
                "condition 'max.other. < 1 and 1 > 0': unknown method 'other'",
            ),
            ("methods", lambda m: m["Plain"].pop("algorithm"), r"methods\.Plain\.algorithm: Field required"),
        ],
    )
    def test_a_papers_mistakes_are_named_with_its_file(self, part: str, change: Any, says: str) -> None:
        rewrite(**{part: change})
        with pytest.raises(UserError, match=says) as caught:
            load_paper("toy")
        assert str(caught.value).startswith("config/papers/toy.yaml: ")

    def test_papers_are_the_files(self) -> None:
        assert configuration.paper_keys() == ["toy"]
        assert {"climb", "localscgdam"} <= set(configuration.paper_keys(CONFIG))
