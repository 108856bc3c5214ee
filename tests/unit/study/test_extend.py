"""Papers that build on another, and what a scale runs of papers it does not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, SCALE, write_yaml

from fedbench.commands.show import described_cell
from fedbench.errors import UserError
from fedbench.report import described
from fedbench.results import published
from fedbench.study.cells import at_scale, resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan

pytestmark = pytest.mark.usefixtures("project")

SETTING = {"p": 4, "imratio": 0.2}


def write(name: str = "mine", **content: Any) -> None:
    write_yaml(Path(f"config/papers/{name}.yaml"), {"extends": "toy", **content})


def keys(paper: str, target: str | None = None, **overrides: Any) -> dict[str, str]:
    """The key of each cell by dataset, setting and method, without the paper's name."""
    chosen = Plan(load_config(overrides=overrides), paper).cells(target)
    return {cell.name.partition("/")[2]: cell.key for cell in chosen}


def test_what_is_not_repeated_is_the_others_and_its_runs_are_shared() -> None:
    write(
        methods={"Mine": {"algorithm": "fedprox", "params": {"lr": 0.1, "mu": 0.5}}},
        tables={"table1": {"methods": ["Plain", "Mine"]}},
    )
    paper = load_paper("mine")
    assert paper.title == PAPER["title"] and list(paper.tables) == ["table1"] and not paper.figures
    assert paper.tables["table1"].rows == ["dataset", "method"]
    mine, theirs = keys("mine"), keys("toy")
    assert set(mine) == {f"Digits/p{p}_imratio0.2/{method}" for p in (2, 4) for method in ("Plain", "Mine")}
    assert all(mine[name] == theirs[name] for name in mine if name.endswith("Plain"))


def test_a_table_that_is_taken_over_has_the_papers_own_words() -> None:
    base = {**PAPER["tables"]["table1"], "title": "Of all five", "caption": "As in Section 4"}
    write_yaml(Path("config/papers/toy.yaml"), {**PAPER, "tables": {"table1": base, "table2": base}})
    write(title="Mine", tables={"table1": {}, "table2": {"title": "Of two", "caption": "By site"}})
    tables = load_paper("mine").tables
    assert [(tables[name].title, tables[name].caption) for name in ("table1", "table2")] == [
        ("Mine", ""),
        ("Of two", "By site"),
    ]


def test_a_value_is_said_to_come_from_the_file_that_has_it() -> None:
    mine = {"algorithm": "fedprox", "params": {"lr": 0.1, "mu": 0.5}}
    write(methods={"Mine": mine}, tables={"table1": {"methods": ["Plain", "Mine"], "settings": {"p": [4]}}})
    plan = Plan(load_config(), "mine")
    for cell, study in zip(plan.cells(), ("toy", "mine"), strict=True):
        source = f"config/papers/{study}.yaml"
        assert described_cell(plan, cell.name)[2] == f"hyper-parameters: not tuned; values from {source}"
        assert any(layer.name == f"method {cell.method} of {source}" for layer in plan.layers(cell))
        assert f", values from {source}: " in described.chosen(plan, [cell])[0]


def test_entries_are_changed_key_by_key_and_null_still_takes_away() -> None:
    write(
        defaults={"train": {"epochs": None, "rounds": 3}},
        methods={"Plain": {"params": {"lr": 0.7}}},
        datasets={"Digits": {"network": {"options": {"hidden": [9]}}}},
        tables={"table1": {}},
    )
    paper, nothing = load_paper("mine"), load_scale("demo").model_copy(update={"papers": {}})
    run = resolve(paper, nothing, "Digits", SETTING, "Plain")
    assert (run.train.rounds, run.train.epochs, run.train.batch_size) == (3, None, 16)
    assert run.params == {"lr": 0.7} and run.method == "fedavg"
    assert run.network.options == {"hidden": [9], "activation": "leaky_relu"}


def test_claims_are_left_behind() -> None:
    better = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
    claim = {"says": "t", "in": "table1", "better": better}
    write_yaml(Path("config/papers/toy.yaml"), {**PAPER, "claims": [claim]})
    write(tables={"table1": {}})
    assert load_paper("toy").claims and not load_paper("mine").claims


def test_published_numbers_come_along_with_what_their_spread_is() -> None:
    folder = Path("published")
    write_yaml(Path("config/papers/toy.yaml"), PAPER | {"tables": {"table1": PAPER["tables"]["table1"] | {
        "published": "numbers.csv"}}})  # fmt: skip
    for path in (folder / "toy/numbers.csv", folder / "mine/numbers.csv", Path("elsewhere.csv")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dataset,method,metric,mean,std\nDigits,Plain,test_auc,0.9,0.1\n")
    (folder / "index.csv").write_text("file,spread,n_seeds\ntoy/numbers.csv,device variance,\n")
    write(tables={"table1": {}})
    inherited = load_paper("mine").tables["table1"].published
    assert inherited == "published/toy/numbers.csv"
    table = PAPER["tables"]["table1"] | {"published": inherited}
    write_yaml(Path("config/papers/path.yaml"), PAPER | {"tables": {"table1": table}})
    write("other", extends="path", tables={"table1": {}})
    assert load_paper("other").tables["table1"].published == inherited
    assert published.load_published("mine", inherited).values[0].spread == "device variance"
    assert published.locate("mine", inherited) == folder / "toy/numbers.csv"
    assert published.locate("mine", "numbers.csv") == folder / "mine/numbers.csv"
    assert published.locate("mine", "elsewhere.csv") == Path("elsewhere.csv")
    assert published.load_published("mine", "elsewhere.csv").values[0].spread == "std"
    assert published.locate("mine", "nowhere.csv") == folder / "mine/nowhere.csv"  # what the message names


def test_a_scale_runs_what_it_runs_of_the_other_and_the_datasets_that_are_added() -> None:
    more = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
    write(datasets={"More": more}, tables={"table1": {}})
    demo, paper = load_scale("demo"), load_paper("mine")
    plan = at_scale(paper, demo)
    assert plan.datasets == ["Digits", "More"] and plan.train == SCALE["papers"]["toy"]["train"]
    assert {name.split("/")[0] for name in keys("mine")} == {"Digits", "More"}
    assert {name.split("/")[0] for name in keys("mine", datasets=["More"])} == {"More"}


def test_a_paper_says_itself_what_a_scale_shortens() -> None:
    write(scales={"demo": {"train": {"iterations": 4}}}, tables={"table1": {}})
    plan = at_scale(load_paper("mine"), load_scale("demo"))
    assert plan.datasets == ["Digits"] and plan.train == {"epochs": None, "iterations": 4, "evaluations": 2}
    write_yaml(Path("config/papers/own.yaml"), {**PAPER, "scales": {"demo": {"datasets": ["Digits"]}}})
    plan = at_scale(load_paper("own"), load_scale("demo"))
    assert plan.datasets == ["Digits"] and not plan.train


def test_a_paper_that_extends_one_with_scales_of_its_own_has_them_too() -> None:
    scales = {"demo": {"datasets": ["Digits"], "train": {"epochs": 1}}}
    write_yaml(Path("config/papers/own.yaml"), {**PAPER, "scales": scales})
    changed = {name: {"note": "ours"} for name in ("Printed", "Digits")}
    write(extends="own", datasets={"More": PAPER["datasets"]["Digits"], **changed}, tables={"table1": {}})
    plan = at_scale(load_paper("mine"), load_scale("demo"))
    assert plan.datasets == ["Digits", "More", "Printed"] and plan.train == {"epochs": 1}


def test_a_paper_nobody_names_runs_as_written() -> None:
    write_yaml(Path("config/papers/own.yaml"), PAPER)
    paper = load_paper("own")
    assert at_scale(paper, load_scale("demo")).train == {}
    chosen = Plan(load_config(), "own").cells()
    assert {cell.dataset for cell in chosen} == {"Printed", "Digits"}
    assert {cell.runs[0].train.epochs for cell in chosen} == {10}


def test_a_paper_without_settings_has_cells_with_an_address() -> None:
    content = {key: PAPER[key] for key in ("title", "citation", "datasets")}
    defaults = {"data": {"clients": 2}, "train": {"rounds": 2, "period": 2, "batch_size": 4}}
    methods = {"Plain": {"algorithm": "fedavg", "params": {"lr": 0.1}}}
    tables = {"table1": {"title": "", "datasets": ["Digits"], "methods": ["Plain"], "metrics": ["test_auc"]}}
    write_yaml(
        Path("config/papers/own.yaml"),
        {**content, "defaults": defaults, "methods": methods, "tables": tables},
    )
    (cell,) = Plan(load_config(), "own").cells()
    assert cell.name == "own/Digits/default/Plain" and cell.path.parts[-2:] == ("default", "Plain.json")


def test_tuned_values_hold_for_what_is_not_touched() -> None:
    write_yaml(
        Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Plain": {"lr": 0.5}, "Proximal": {"lr": 0.4}}}
    )
    write(methods={"Proximal": {"params": {"mu": 0.9}}}, tables={"table1": {}})
    demo = load_scale("demo")

    def lr(method: str) -> float:
        return float(resolve(load_paper("mine"), demo, "Digits", SETTING, method).params["lr"])

    assert (lr("Plain"), lr("Proximal")) == (0.5, 0.1)
    write_yaml(Path("config/tuned/mine/Digits.yaml"), {"chosen": {"Proximal": {"lr": 0.3}}})
    assert (lr("Plain"), lr("Proximal")) == (0.5, 0.3)
    write(datasets={"Digits": {"note": "ours"}}, tables={"table1": {}})
    assert lr("Plain") == 0.1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"extends": "tooy"}, r"mine\.yaml: unknown paper to extend 'tooy'. Did you mean 'toy'"),
        ({"extends": "mine"}, "unknown paper to extend 'mine'"),
        ({"extends": ["toy"]}, "unknown paper to extend"),
        ({"methods": {"Mine": {}}}, r"mine\.yaml: methods\.Mine\.algorithm: Field required"),
        ({"methods": ["Mine"]}, r"mine\.yaml: methods: .*dictionary"),
        ({"datasets": None}, r"mine\.yaml: datasets: .*dictionary"),
        ({"tables": {"table1": None}}, r"mine\.yaml: tables\.table1: "),
        ({"tables": {"table1": {"methods": ["Mine"]}}}, "table1: unknown method 'Mine'"),
        ({"tables": {"new": {"methods": ["Plain"]}}}, r"tables\.new\.title: Field required"),
        ({"scales": {"demo": {"data": 1}}}, r"scales\.demo\.data: unknown key"),
    ],
)
def test_mistakes_are_named_with_the_file(content: dict[str, Any], says: str) -> None:
    write(**content)
    with pytest.raises(UserError, match=says):
        load_paper("mine")


def test_chains_circles_and_broken_bases_are_refused() -> None:
    write("one")
    write("two", extends="one")
    with pytest.raises(UserError, match=r"two\.yaml extends one, which extends another paper itself"):
        load_paper("two")
    write("one", extends="two")
    with pytest.raises(UserError, match="extends another paper itself"):
        load_paper("one")
    write_yaml(Path("config/papers/broken.yaml"), {**PAPER, "tabels": {}})
    write(extends="broken")
    with pytest.raises(UserError, match=r"broken\.yaml: tabels: unknown key. Did you mean 'tables'"):
        load_paper("mine")
    Path("config/papers/mine.yaml").write_text("- toy\n")
    with pytest.raises(UserError, match=r"mine\.yaml holds no keys"):
        load_paper("mine")


def test_a_dataset_that_is_added_keeps_its_labels_and_samples_unless_its_entry_says_otherwise() -> None:
    """What the base drops and calls positive is about the base's data: a user's were turned round and thinned."""
    turned = {
        "labels": {"rule": "named", "positive": [1], "flip": 0.1},
        "imbalance": {"rule": "drop_positives"},
    }
    base = {**PAPER, "defaults": {**PAPER["defaults"], "data": {**PAPER["defaults"]["data"], **turned}}}
    write_yaml(Path("config/papers/toy.yaml"), base)
    network = {"network": PAPER["datasets"]["Digits"]["network"]}
    entries = {
        "Mine": {"data": {"dataset": "digits"}},
        "Halved": {
            "data": {"dataset": "digits", "labels": {"rule": "halves", "positive": None, "flip": None}}
        },
        "Dropped": {"data": {"dataset": "digits", "imbalance": {"rule": "drop_positives"}}},
    }
    write(
        datasets={name: {**entry, **network} for name, entry in entries.items()}
        | {"Digits": {"note": "ours"}},
        tables={"table1": {"datasets": list(entries)}},
    )
    paper, scale = load_paper("mine"), load_scale("demo")
    names = {name: resolve(paper, scale, name, SETTING, "Plain").data for name in (*entries, "Digits")}
    rules = {name: (data.labels.rule, data.labels.flip, data.imbalance.rule) for name, data in names.items()}
    assert rules == {
        "Mine": ("original", 0, "none"),
        "Halved": ("halves", 0, "none"),
        "Dropped": ("original", 0, "drop_positives"),
        "Digits": ("named", 0.1, "drop_positives"),
    }
    datasets = {cell.dataset for cell in Plan(load_config(), "mine").cells("table1")}
    assert datasets == set(entries), "a table of one's own data holds what it names"

    halves = {"labels": {"rule": "halves", "positive": None, "flip": None}}
    write(defaults={"data": halves}, datasets={"Mine": {**entries["Mine"], **network}}, tables={"table1": {}})
    data = resolve(load_paper("mine"), scale, "Mine", SETTING, "Plain").data
    assert (data.labels.rule, data.imbalance.rule) == ("halves", "none"), "as the new paper's defaults say"
