"""The user's configuration, and mistakes in it and in a paper's file: names that reach paths and commands too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, rewrite, write_yaml

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.study.claims import FORMS
from fedbench.study.configuration import load_config, load_paper, load_scale, paper_keys, study_path
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

pytestmark = pytest.mark.usefixtures("project")
PLAIN = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
WINDOW = PLAIN | {"largest": "p", "within": 0.01, "at_least": 4}
TREND = {"method": "Plain", "metric": "test_auc", "along": "p"}
EXISTS = {"method": "Other", "above": 0.9, "others_below": 0.6, "metric": "test_auc"}
ALONE, GAP = EXISTS | {"method": "Plain"}, {**TREND, "method": None, "gap": ["Plain", "best_other"]}
COST = {"method": "Plain", "than": "Proximal", "needs": "round", "at_most": 1}
BOARD = {"random": "Plain", "budget": "samples", "within": {"Printed": 9}}
OWN = {"measures": {"mine": {"label": "mine", "better": "lower"}}}
DATA = {"title": "f", "kind": "facts", "datasets": []}


def table(**changes: Any) -> dict[str, Any]:
    return {"tables": lambda tables: tables["table1"].update(changes)}


def figure(**changes: Any) -> dict[str, Any]:
    return {"figures": lambda figures: figures["figure1"].update(changes)}


def claim(**content: Any) -> dict[str, Any]:
    """A claim about Table 1 that says Good and, unless another form is given, that Plain is better."""
    form = {} if {*content} & {*FORMS} else {"better": PLAIN}
    return {"claims": [{"says": "Good", "in": ["table1"], **form, **content}]}


POOLED = table(kind="rates", pool=["p"])


def better(**changes: Any) -> dict[str, Any]:
    return claim(better=PLAIN | changes)


class TestConfig:
    def test_overrides_win_and_null_keeps_the_file(self) -> None:
        config = load_config(overrides={"scale": "paper", "paper": None, "seeds": 3, "datasets": "A, B"})
        assert (config.scale, config.paper) == ("paper", "toy")
        assert (config.seeds, config.datasets) == ([3], ["A", "B"])
        assert load_config(overrides={"seeds": "0,1"}).seeds == [0, 1]

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"scal": "demo"}, r"unknown key of the configuration 'scal'\. Did you mean 'scale'\?"),
            ({"iterations": 200}, r"unknown key .* 'iterations'\. Did you mean 'train\.iterations'\?"),
            ({"seeds": "0,x"}, "seeds: '0,x' is not a list of whole numbers"),
            ({"seeds": [0, 0]}, "seeds: a seed is given twice"),
            ({"seeds": []}, "seeds: "),
            ({"data_dir": "a\nb"}, "data_dir: .*control characters"),
        ],
    )
    def test_mistakes_are_named(self, options: dict[str, Any], says: str) -> None:
        with pytest.raises(UserError, match=says):
            load_config(overrides=options)

    def test_what_a_call_gives_is_not_blamed_on_the_file(self) -> None:
        for key, source in (("tolerance", "--set"), ("device", "--config")):
            with pytest.raises(UserError, match=rf"^{source}: {key}: Input should be"):
                load_config({key: "x"}, source)
        Path("config/config.yaml").write_text("tolerance: x")
        with pytest.raises(UserError, match=r"^config/config\.yaml: tolerance: "):
            load_config({"device": "cpu"}, "--set")

    def test_missing_and_broken_files_are_named(self) -> None:
        with pytest.raises(UserError, match=r"unknown paper 'toys'\. Did you mean 'toy'\?"):
            load_paper("toys")
        with pytest.raises(UserError, match=r"unknown scale 'deom'.*'demo'\? Known: demo, paper"):
            load_scale("deom")
        Path("config/papers/toy.yaml").write_text("- toy\n")
        with pytest.raises(UserError, match=r"toy\.yaml holds no keys but \['toy'\]"):
            load_paper("toy")
        Path("config/config.yaml").write_text("scale: [demo")
        with pytest.raises(UserError, match=r"config/config\.yaml is not valid YAML"):
            load_config()
        Path("config/config.yaml").unlink()
        with pytest.raises(UserError, match=r"config/config\.yaml does not exist; `fedbench init`"):
            load_config()

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (table(datasets=["Digit"]), "table1: unknown dataset 'Digit'.*'Digits'"),
            (table(methods=["Plaine"]), "table1: unknown method 'Plaine'"),
            (table(pool=["q"]), "table1: pool: unknown setting 'q'"),
            (table(metrics=["tset_auc"]), "unknown metric 'tset_auc'. Did you mean 'test_auc'"),
            (table(metrics=["test_auc", "test_auc"]), "table1: metrics: test_auc is listed twice"),
            (table(columns=["p", "dataset"]), "table1: dataset is in rows and columns twice"),
            (table(settings={"p": [4, 4.0]}), r"table1: p: 4, 4\.0 is listed twice"),
            (table(settings={"p": []}), r"table1\.settings\.p: List should have at least 1 item"),
            (figure(settings={"p": []}), r"figure1\.settings\.p: List should have at least 1 item"),
            (table(metrics=["worst_site_test_mine"]) | OWN, r"tables\.table1\.metrics: worst_.*test_mine@sites"),
            (table(kind="leaderboard", board={"random": "Plian"}), "table1: board: unknown method 'Plian'.*'Plain'"),
            (table(kind="leaderboard", board=BOARD | {"to": {"Printed": 97}}), r"tables\.table1: .*test_auc.*at 97"),
            (table(rounds_to={"test_auc": [0.95, None]}), r"tables\.table1\.rounds_to\.test_auc.*: .*number"),
            (table(rounds_to={"test_auc": None}), r"tables\.table1\.rounds_to\.test_auc: .*number"),
            (table(rounds_to={5: 95}), r"tables\.table1\.rounds_to\.5.*: .*string"),
            (table(rounds_to={"test_auc": 0.9}, metrics=None), r"tables\.table1\.metrics: .*list"),
            (table(rounds_to={"test_auc": 0.9}, metrics="test_auc"), r"tables\.table1\.metrics: .*list"),
            (figure(settings={"q": [1]}), "figure1: unknown setting 'q'"),
            (figure(datasets=["Digits", "Printed"], panels="p"), "several datasets need panels: dataset"),
            (figure(methods=["Plain", "Plain"]), "figure1: methods: Plain is listed twice"),
            (figure(kind="pareto", x="round"), "pareto takes panels: dataset, one metric, and floats_up"),
            (figure(x="rond"), "figure1: unknown x of a figure of kind curves 'rond'.*'round'"),
            (figure(references=["local"]), "references go with kind "),
            (figure(kind="forest", references=["local", "pooled"]), "at most one reference"),
            ({"proposes": ["Plane"]}, "proposes: unknown method 'Plane'.*'Plain'"),
            (figure(kind="final", x="p", settings={"p": [True]}), "figure1: x: p takes True here"),
            ({"scales": {"demo": {"settings": {"q": [1]}}}}, "scales: demo: unknown setting 'q'"),
            ({"scales": {"demo": {"settings": {"p": []}}}}, r"demo\.settings\.p: List should have at least 1 item"),
            (claim(**{"in": ["tabel1"]}), "unknown table or figure 'tabel1'.*'table1'"),
            (better(method="Plane"), r"claims: 1 \(Good\): unknown method 'Plane'.*'Plain'"),
            (better(than=["Plane"]), "unknown method 'Plane'.*'Plain'"),
            (better(when={"p": 2}), "when goes with a than that names a setting"),
            (better(change={"q": [1, 2]}), "claims: 1.*unknown setting 'q'"),
            (claim(only={"q": 1}), "claims: 1.*unknown setting 'q'"),
            (claim(only={"p": 5}), "claims: 1.*unknown value of p '5'"),
            (better(than={"p": 4}, when={"p": 2}, rival="Plane"), "unknown method 'Plane'.*'Plain'"),
            (claim(trend=TREND | {"gap": ["Plain", "Proximal"]}), "give either method or gap"),
            (claim(trend=TREND, holds="all"), "holds goes with better, no_worse and equal"),
            (claim(trend=TREND | {"along": "imratio"}), "table1 has one imratio only"),
            (claim(**{"in": ["f"]}) | {"tables": lambda t: t.update(f=DATA)}, "f shows datasets, not results"),
            (table(methods=["Plain"]) | better(), r"claims: 1 \(Good\): table1 does not show Proximal"),
            (table(settings={"p": [2]}) | claim(only={"p": 4}), r"claims: 1 .*table1 does not show p 4, only 2"),
            (better(than={"p": 4}, when={"p": 4}), r"claims\.0\.better: when and than are the same"),
            (claim(trend={"gap": ["Plain", "Plain"], "metric": "test_auc", "along": "p"}), "gap: Plain is named twice"),
            (better(than="Plain"), r"claims\.0\.better: than: Plain is the method itself"),
            (better(than={"p": 4}), r"claims\.0\.better: when .*both name the same"),
            (better(than={"p": 4}, when={"p": 2, "imratio": 0.2}), r"claims\.0\.better: when .*both name the same"),
            (claim(ratio=COST | {"when": {"p": 2}}), r"claims\.0\.ratio: when .*both name the same"),
            (claim(ratio=COST | {"than": {"p": 2}}), r"claims\.0\.ratio: when .*both name the same"),
            (claim(ratio=COST | {"than": "Plain"}), r"claims\.0\.ratio: than: Plain is the method itself"),
            (claim(ratio=COST | {"to": {"test_auc": 97}}), r"claims\.0\.ratio: .*test_auc.*not at 97"),
            (claim(exists=EXISTS, holds="all"), "holds goes with better, no_worse and equal"),
            (table(methods=["Plain"]) | claim(exists=ALONE), r"claims: 1 \(Good\): table1 shows no other method"),
            (table(methods=["Plain"]) | claim(trend=GAP), r"claims: 1 \(Good\): table1 shows no other method"),
            (POOLED | claim(only={"p": 2}), r"claims: 1 \(Good\): table1 pools p"),
            (POOLED | claim(trend=TREND), r"claims: 1 \(Good\): table1 pools p"),
            (table(settings={"p": [0, 2]}) | claim(ratio=WINDOW | {"of": 2}), r"\(Good\): largest: p takes 0;"),
            (table(settings={"p": ["none", 2]}) | claim(ratio=WINDOW | {"of": 2}), "largest: p takes none;"),
            (claim(ratio=WINDOW | {"of": "2"}), "largest: p takes 2; .*positive numbers"),
            (claim(ratio=WINDOW), "largest needs within, of and metric"),
            (claim(ratio=WINDOW | {"of": 5}), "claims: 1 .Good.: unknown value of p '5'"),
            (claim(better=PLAIN, equal=PLAIN | {"margin": 0.1}), "exactly one of better, no_worse, equal"),
            (claim(exists=EXISTS), "unknown method 'Other'"),
        ],
    )  # fmt: skip
    def test_a_papers_mistakes_are_named_with_its_file(self, change: dict[str, Any], says: str) -> None:
        rewrite(**change)
        with pytest.raises(UserError, match=says) as caught:
            load_paper("toy")
        assert str(caught.value).startswith("config/papers/toy.yaml: ")

    def test_targets_are_metrics_after_those_that_are_named(self) -> None:
        rewrite(**table(metrics=["test_auc"], rounds_to={"test_auc": ["0.95", 0.9], "val_auc": 0.8}))
        targets = [f"rounds_to_{target}" for target in ("test_auc_0.95", "test_auc_0.9", "val_auc_0.8")]
        assert load_paper("toy").tables["table1"].metrics == ["test_auc", *targets]

    def test_a_scale_runs_no_setting_that_the_study_has_not(self) -> None:
        scale = {"description": "x", "seeds": [0], "papers": {"toy": {"settings": {"imratoi": [0.2]}}}}
        write_yaml(Path("config/scales/demo.yaml"), scale)
        with pytest.raises(UserError, match=r"setting of toy in scales/demo\.yaml 'imratoi'.*'imratio'"):
            Plan(load_config(), "toy").cells()

    def test_runs_choose_by_no_metric_that_falls_unknown_to_them(self) -> None:
        def select(**train: Any) -> list[Any]:
            held_out = {"defaults": lambda all: all["data"].update(validation=0.2)}
            rewrite(methods=lambda all: all["Plain"].update(train=train), **held_out, **OWN)
            return Plan(load_config(), "toy").cells()

        with pytest.raises(UserError, match=r"toy/Digits/Plain .*train\.select: .*val_mine.*negative"):
            select(select="val_mine")
        assert select(select="val_loss") and select(select="val_auc"), "whose direction they know"

    def test_a_method_may_be_run_on_an_addition_alone(self) -> None:
        alone = {"methods": lambda all: all["Plain"].update(only={"dataset": ["Digits"]}), "figures": {}}
        rewrite(**alone)
        with pytest.raises(UserError, match="table1: Plain has only dataset Digits, not Printed"):
            load_paper("toy")
        rewrite(**alone, **table(additions=["Digits"]))
        assert load_paper("toy").tables["table1"].additions == ["Digits"]

    def test_a_claim_may_be_narrowed_to_a_value_that_only_the_default_is(self) -> None:
        rewrite(**claim(only={"imratio": 0.2}))
        assert load_paper("toy").claims[0].only == {"imratio": [0.2]}

    def test_a_study_that_is_no_paper_has_a_folder_of_its_own_and_its_name_to_itself(self) -> None:
        mine = Path("config/studies/mine.yaml")
        write_yaml(mine, {"extends": "toy", "title": "Mine"})
        assert load_paper("mine").title == "Mine" and study_path("mine") == mine
        assert paper_keys() == ["mine", "toy"]
        write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy"})
        with pytest.raises(UserError, match=r"config/studies/mine\.yaml and config/papers/mine\.yaml"):
            load_paper("mine")


HOSTILE = [
    "$(touch x)", "../../x", "a b", "a;b", "-x", ".x", "{x}", "a\nb", "a/b", "`id`", "é", "", "x" * 101,
]  # fmt: skip
TABLE, DIGITS = PAPER["tables"]["table1"], PAPER["datasets"]["Digits"]


def named(kind: str, name: str) -> dict[str, Any]:
    """A part of the paper with an entry of a name."""
    return {kind: {**PAPER[kind], name: next(iter(PAPER[kind].values()))}}


def valued(value: str) -> dict[str, Any]:
    """A table at a value of a setting."""
    settings = PAPER["settings"] | {"p": PAPER["settings"]["p"] | {"values": {value: 4}}}
    return {"tables": {"table1": TABLE | {"settings": {"p": [value]}}}, "settings": settings}


def of_digits(**entry: Any) -> dict[str, Any]:
    return {"datasets": PAPER["datasets"] | {"Digits": DIGITS | entry}}


PLACES: list[tuple[dict[str, Any], str]] = [
    *((named("tables", name), "is not a name") for name in HOSTILE),
    *((named(kind, "../x"), "is not a name") for kind in ("figures", "methods", "datasets", "settings")),
    *((valued(value), "the value of a setting has") for value in ("../x", "a/b", "$(id)", "a\nb")),
    (of_digits(data={"dataset": "../config/papers/toy"}), "is not a name"),
    (of_digits(network={"name": "../x"}), "is not a name"),
    (of_digits(data={"dataset": "digits", "partition": {"rule": "../x"}}), "is not a name"),
]


@pytest.mark.parametrize(("changed", "says"), PLACES)
def test_no_name_in_a_paper_leads_elsewhere(changed: dict[str, Any], says: str) -> None:
    write_yaml(Path("config/papers/toy.yaml"), PAPER | changed)
    with pytest.raises(UserError, match=says) as caught:
        Plan(Config(paper="toy")).cells("table1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["$(touch x)", "{x}", "-x"])
def test_no_paper_file_has_a_hostile_name(name: str) -> None:
    write_yaml(Path(f"config/papers/{name}.yaml"), PAPER)
    with pytest.raises(UserError, match="is not a name"):
        configuration.load_paper(name)


def test_the_data_folder_has_no_braces() -> None:
    with pytest.raises(ValueError, match="mean something to Snakemake"):
        Config(data_dir="data/{x}")
