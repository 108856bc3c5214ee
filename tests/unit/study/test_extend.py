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
from fedbench.spec import RunSpec
from fedbench.study.cells import at_scale, resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan
from fedbench.study.schema import ScalePaper

pytestmark = pytest.mark.usefixtures("project")

MINE = {"algorithm": "fedprox", "params": {"lr": 0.1, "mu": 0.5}}
MORE = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
TABLE = PAPER["tables"]["table1"]


def write(name: str = "mine", **content: Any) -> None:
    write_yaml(Path(f"config/papers/{name}.yaml"), {"extends": "toy", "tables": {"table1": {}}, **content})


def base(name: str = "toy", **content: Any) -> None:
    """Write the paper that is extended, with changes of its parts."""
    write_yaml(Path(f"config/papers/{name}.yaml"), {**PAPER, **content})


def keys(paper: str, **overrides: Any) -> dict[str, str]:
    """The key of each cell by dataset, setting and method, without the paper's name."""
    chosen = Plan(load_config(overrides=overrides), paper).cells()
    return {cell.name.partition("/")[2]: cell.key for cell in chosen}


def run(method: str = "Plain", dataset: str = "Digits", scale: Any = None) -> RunSpec:
    at = {"p": 4, "imratio": 0.2}
    return resolve(load_paper("mine"), scale or load_scale("demo"), dataset, at, method)


def scaled(paper: str) -> ScalePaper:
    return at_scale(load_paper(paper), load_scale("demo"))


def test_what_is_not_repeated_is_the_others_and_its_runs_are_shared() -> None:
    write(methods={"Mine": MINE}, tables={"table1": {"methods": ["Plain", "Mine"]}})
    paper = load_paper("mine")
    assert paper.title == PAPER["title"] and list(paper.tables) == ["table1"] and not paper.figures
    assert paper.tables["table1"].rows == ["dataset", "method"]
    mine, theirs = keys("mine"), keys("toy")
    assert set(mine) == {f"Digits/p{p}_imratio0.2/{method}" for p in (2, 4) for method in ("Plain", "Mine")}
    assert all(mine[name] == theirs[name] for name in mine if name.endswith("Plain"))

    plan = Plan(load_config(), "mine")
    for cell, study in zip(plan.cells()[:2], ("toy", "mine"), strict=True):
        source = f"config/papers/{study}.yaml"
        assert described_cell(plan, cell.name)[2] == f"hyper-parameters: not tuned; values from {source}"
        assert any(layer.name == f"method {cell.method} of {source}" for layer in plan.layers(cell))
        assert f", values from {source}: " in described.chosen(plan, [cell])[0]


def test_a_table_that_is_taken_over_has_the_papers_own_words_and_claims_are_left_behind() -> None:
    better = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
    table = {**TABLE, "title": "Of all five", "caption": "As in Section 4"}
    claims = [{"says": "t", "in": "table1", "better": better}]
    base(tables={"table1": table, "table2": table}, claims=claims)
    write(title="Mine", tables={"table1": {}, "table2": {"title": "Of two", "caption": "By site"}})
    words = [(table.title, table.caption) for table in load_paper("mine").tables.values()]
    assert words == [("Mine", ""), ("Of two", "By site")]
    assert load_paper("toy").claims and not load_paper("mine").claims


def test_entries_are_changed_key_by_key_and_null_still_takes_away() -> None:
    write(
        defaults={"train": {"epochs": None, "rounds": 3}},
        methods={"Plain": {"params": {"lr": 0.7}}},
        datasets={"Digits": {"network": {"options": {"hidden": [9]}}}},
    )
    plain = run(scale=load_scale("demo").model_copy(update={"papers": {}}))
    assert (plain.train.rounds, plain.train.epochs, plain.train.batch_size) == (3, None, 16)
    assert plain.params == {"lr": 0.7} and plain.method == "fedavg"
    assert plain.network.options == {"hidden": [9], "activation": "leaky_relu"}


def test_published_numbers_come_along_with_what_their_spread_is() -> None:
    theirs, ours, elsewhere = "published/toy/numbers.csv", "published/mine/numbers.csv", "elsewhere.csv"
    for path in map(Path, (theirs, ours, elsewhere)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dataset,method,metric,mean,std\nDigits,Plain,test_auc,0.9,0.1\n")
    Path("published/index.csv").write_text("file,spread,n_seeds\ntoy/numbers.csv,device variance,\n")
    for printed in ("numbers.csv", theirs):
        base(tables={"table1": TABLE | {"published": printed}})
        write()
        assert load_paper("mine").tables["table1"].published == theirs
    for name, path, spread in (
        (theirs, theirs, "device variance"), ("numbers.csv", ours, "std"), (elsewhere, elsewhere, "std"),
    ):  # fmt: skip
        assert published.locate("mine", name) == Path(path)
        assert published.load_published("mine", name).values[0].spread == spread
    assert published.locate("mine", "nowhere.csv") == Path("published/mine/nowhere.csv"), "which is named"


def test_a_scale_runs_what_it_runs_of_the_other_and_the_datasets_that_are_added() -> None:
    write(datasets={"More": MORE})
    assert scaled("mine").datasets == ["Digits", "More"]
    assert scaled("mine").train == SCALE["papers"]["toy"]["train"]
    for given, datasets in (({}, {"Digits", "More"}), ({"datasets": ["More"]}, {"More"})):
        assert {name.split("/")[0] for name in keys("mine", **given)} == datasets
    write(scales={"demo": {"train": {"iterations": 4}}})
    assert scaled("mine").datasets == ["Digits"]
    assert scaled("mine").train == {"epochs": None, "iterations": 4, "evaluations": 2}


def test_a_length_that_the_scale_of_the_other_replaces_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    write(datasets={"More": MORE | {"train": {"iterations": 7}}}, tables={"table1": {"datasets": ["More"]}})
    for _ in range(2):
        run(dataset="More")
    (told,) = caplog.messages
    assert "mine.yaml: datasets.More.train: iterations: 7 " in told and "iterations: 8 of scale demo" in told
    assert "`fixed: {train: {iterations: 7}}`" in told
    write(datasets={"More": MORE | {"train": {"iterations": [7]}}})
    assert run(dataset="More").train.iterations == 8, "a list, which a set takes none of, gives way too"


def test_a_paper_that_no_scale_names_says_itself_what_it_shortens_or_runs_as_written() -> None:
    base("own", scales={"demo": {"datasets": ["Digits"]}})
    assert scaled("own").datasets == ["Digits"] and not scaled("own").train
    base("own", scales={"demo": {"datasets": ["Digits"], "train": {"epochs": 1}}})
    changed = {name: {"note": "ours"} for name in ("Printed", "Digits")}
    write(extends="own", datasets={"More": MORE, **changed})
    assert scaled("mine").datasets == ["Digits", "More", "Printed"] and scaled("mine").train == {"epochs": 1}
    base("own")
    chosen = Plan(load_config(), "own").cells()
    assert scaled("own").train == {} and {cell.dataset for cell in chosen} == {"Printed", "Digits"}
    assert {cell.runs[0].train.epochs for cell in chosen} == {10}


def test_what_a_method_of_the_base_has_only_is_no_mistake_of_a_study_without_it() -> None:
    base(methods={**PAPER["methods"], "Late": {**MINE, "only": {"p": [8]}}})
    alone = {"tables": {"table1": {"methods": ["Plain"]}}}
    write(**alone)
    assert load_paper("mine").methods["Late"].only == {"p": [8]}
    write(**alone, methods={"Late": {"params": {"mu": 0.1}}})
    with pytest.raises(UserError, match=r"mine\.yaml: Late: only: p: unknown value '8'"):
        load_paper("mine")


def test_a_cell_of_a_paper_without_settings_has_an_address() -> None:
    base(
        "own",
        defaults={"data": {"clients": 2}, "train": {"rounds": 2, "period": 2, "batch_size": 4}},
        tables={"table1": TABLE | {"datasets": ["Digits"], "methods": ["Plain"], "settings": {}, "columns": []}},
        settings={}, figures={}, tune=None,
    )  # fmt: skip
    (cell,) = Plan(load_config(), "own").cells()
    assert cell.name == "own/Digits/default/Plain" and cell.path.parts[-2:] == ("default", "Plain.json")


def test_tuned_values_hold_for_what_is_not_touched() -> None:
    chosen = {"Plain": {"lr": 0.5}, "Proximal": {"lr": 0.4}}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": chosen})
    write(methods={"Proximal": {"params": {"mu": 0.9}}})
    steps = [run(method).params["lr"] for method in ("Plain", "Proximal")]
    assert steps == [0.5, 0.1]
    write_yaml(Path("config/tuned/mine/Digits.yaml"), {"chosen": {"Proximal": {"lr": 0.3}}})
    assert [run(method).params["lr"] for method in ("Plain", "Proximal")] == [0.5, 0.3]
    write(datasets={"Digits": {"note": "ours"}})
    assert run().params["lr"] == 0.1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"extends": "tooy"}, r"mine\.yaml: unknown paper to extend 'tooy'. Did you mean 'toy'"),
        ({"extends": ["toy"]}, "unknown paper to extend"),
        ({"extends": "chained"}, r"mine\.yaml extends chained, which extends another paper itself"),
        ({"extends": "broken"}, r"broken\.yaml: tabels: unknown key. Did you mean 'tables'"),
        ({"methods": {"Mine": {}}}, r"mine\.yaml: methods\.Mine\.algorithm: Field required"),
        ({"methods": ["Mine"]}, r"mine\.yaml: methods: .*dictionary"),
        ({"tables": {"table1": None}}, r"mine\.yaml: tables\.table1: "),
        ({"tables": {"table1": {"methods": ["Mine"]}}}, "table1: unknown method 'Mine'"),
        ({"tables": {"new": {"methods": ["Plain"]}}}, r"tables\.new\.title: Field required"),
        ({"scales": {"demo": {"data": 1}}}, r"scales\.demo\.data: unknown key"),
        ({"defaults": [1], "datasets": {"More": MORE}}, r"mine\.yaml: defaults: .*dictionary"),
        ({"tables": [1], "datasets": {"More": MORE}}, r"mine\.yaml: tables: .*dictionary"),
        ({"tables": {"table1": {"datasets": None}}, "datasets": {"More": MORE}}, r"table1\.datasets: .*list"),
    ],
)
def test_mistakes_are_named_with_the_file(content: dict[str, Any], says: str) -> None:
    write("chained", extends="mine")
    base("broken", tabels={})
    write(**content)
    with pytest.raises(UserError, match=says):
        load_paper("mine")


@pytest.mark.parametrize(
    "entry",
    [
        {"data": {"dataset": "digits", "sources": 5}},
        {"data": {"dataset": []}},
        *({"fixed": {part: 5}} for part in ("data", "train", "start")),
    ],
)
def test_a_part_of_a_run_that_has_no_keys_is_named_with_its_cell(entry: dict[str, Any]) -> None:
    table = {"datasets": ["More"], "metrics": ["test_auc@sites"], "settings": {"p": [4]}}
    write(datasets={"More": MORE | entry}, tables={"table1": table})
    with pytest.raises(UserError, match=r"^mine/More/Plain at scale demo: (data|train|start)"):
        Plan(load_config(), "mine").cells()


def test_a_dataset_that_is_added_keeps_its_labels_and_samples_unless_its_entry_says_otherwise() -> None:
    """What the base drops and calls positive is about the base's data: a user's were turned round and thinned."""
    turned = {
        "labels": {"rule": "named", "positive": [1], "flip": 0.1},
        "imbalance": {"rule": "drop_positives"},
    }
    base(defaults={**PAPER["defaults"], "data": {**PAPER["defaults"]["data"], **turned}})
    halves = {"labels": {"rule": "halves", "positive": None, "flip": None}}
    rules = {"Mine": {}, "Halved": halves, "Dropped": {"imbalance": {"rule": "drop_positives"}}}
    entries = {name: {**MORE, "data": {"dataset": "digits", **rule}} for name, rule in rules.items()}
    table = {"table1": {"datasets": list(entries)}}
    write(datasets=entries | {"Digits": {"note": "ours"}}, tables=table)
    data = {name: run(dataset=name).data for name in (*entries, "Digits")}
    assert {name: (of.labels.rule, of.labels.flip, of.imbalance.rule) for name, of in data.items()} == {
        "Mine": ("original", 0, "none"),
        "Halved": ("halves", 0, "none"),
        "Dropped": ("original", 0, "drop_positives"),
        "Digits": ("named", 0.1, "drop_positives"),
    }
    shown = {cell.dataset for cell in Plan(load_config(), "mine").cells("table1")}
    assert shown == set(entries), "a table of one's own data holds what it names"
    write(defaults={"data": halves}, datasets={"Mine": entries["Mine"]})
    mine = run(dataset="Mine").data
    assert (mine.labels.rule, mine.imbalance.rule) == ("halves", "none"), "as the new paper's defaults say"
