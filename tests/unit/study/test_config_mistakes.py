"""The user's configuration, and mistakes in it and in a paper's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import write_yaml
from toy_changes import CONFIG, rewrite

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.study.configuration import load_config, load_paper, load_scale, paper_keys, study_path

PLAIN = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
CLAIM = {"says": "Good", "in": ["table1"], "better": PLAIN}
WINDOW: dict[str, Any] = {
    "says": "Long",
    "in": ["table1"],
    "ratio": PLAIN | {"largest": "p", "within": 0.01, "at_least": 4},
}


TREND = {"method": "Plain", "metric": "test_auc", "along": "p"}
EXISTS = {"method": "Other", "above": 0.9, "others_below": 0.6, "metric": "test_auc"}


def table(**changes: Any) -> dict[str, Any]:
    return {"tables": lambda tables: tables["table1"].update(changes)}


def figure(**changes: Any) -> dict[str, Any]:
    return {"figures": lambda figures: figures["figure1"].update(changes)}


def claim(changes: dict[str, Any]) -> dict[str, Any]:
    return {"claims": [CLAIM | changes]}


def better(**changes: Any) -> dict[str, Any]:
    return claim({"better": PLAIN | changes})


@pytest.mark.usefixtures("project")
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
            ({"device": "gpu"}, "device: Input should be 'auto', 'cpu' or 'cuda'"),
            ({"seeds": "0,x"}, "seeds: '0,x' is not a list of whole numbers"),
            ({"seeds": [0, 0]}, "seeds: a seed is given twice"),
            ({"seeds": []}, "seeds: "),
            ({"seeds": [-1]}, "seeds"),
            ({"client_chunk": 0}, "client_chunk: Input should be greater than or equal to 1"),
            ({"tolerance": -1}, "tolerance"),
            ({"data_dir": "a\nb"}, "data_dir: .*control characters"),
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
        with pytest.raises(UserError, match=r"config/config\.yaml does not exist; `fedbench init`"):
            load_config()

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (table(datasets=["Digit"]), "table1: unknown dataset 'Digit'.*'Digits'"),
            (table(methods=["Plaine"]), "table1: unknown method 'Plaine'"),
            (figure(settings={"q": [1]}), "figure1: unknown setting 'q'"),
            (table(pool=["q"]), "table1: pool: unknown setting 'q'"),
            (table(additions=["Digit"]), "table1: additions: unknown dataset 'Digit'"),
            ({"scales": {"demo": {"settings": {"q": [1]}}}}, "scales: demo: unknown setting 'q'"),
            (table(metric=["x"]), r"tables\.table1\.metric: unknown key.*'metrics'"),
            (
                table(metrics=["test_overal_accuracy"]),
                r"table1\.metrics.*unknown metric 'test_overal_accuracy'\. Did you mean 'test_overall_accuracy'",
            ),
            (table(metrics=["tset_auc"]), "'tset_auc'. Did you mean 'test_auc'"),
            (table(metrics=["auc"]), "unknown metric 'auc'"),
            (
                figure(datasets=["Digits", "Printed"], panels="p"),
                "figure1: several datasets need panels: dataset",
            ),
            (table(columns=["p", "dataset"]), "table1: dataset is in rows and columns twice"),
            (table(metrics=["test_auc", "test_auc"]), "table1: metrics: test_auc is listed twice"),
            (figure(methods=["Plain", "Plain"]), "figure1: methods: Plain is listed twice"),
            (
                figure(kind="pareto", x="round"),
                "kind pareto takes panels: dataset, one metric, and floats_up",
            ),
            (figure(metrics=["test_uac"]), "unknown metric.*'test_auc'"),
            (
                figure(kind="final", x="p", settings={"p": [True]}),
                "figure1: x: p takes True here, which is no n",
            ),
            (claim({"in": ["tabel1"]}), "unknown table or figure 'tabel1'.*'table1'"),
            (better(method="Plane"), r"claims: 1 \(Good\): unknown method 'Plane'.*'Plain'"),
            (better(than=["Plane"]), "unknown method 'Plane'.*'Plain'"),
            (better(when={"p": 2}), "when goes with a than that names a setting"),
            (better(change={"q": [1, 2]}), "claims: 1.*unknown setting 'q'"),
            (better(metric="test_pa"), "claims.*unknown metric 'test_pa'"),
            (claim({"only": {"q": 1}}), "claims: 1.*unknown setting 'q'"),
            (claim({"only": {"p": 5}}), "claims: 1.*unknown value of p '5'"),
            (
                {"claims": [{"says": "x", "in": "table1", "holds": "all", "trend": TREND}]},
                "holds goes with better, no_worse and equal",
            ),
            (
                {"claims": [{"says": "x", "in": "table1", "trend": TREND | {"along": "imratio"}}]},
                "table1 has one imratio only, so there is no trend to judge",
            ),
            (
                {
                    "claims": [CLAIM | {"in": ["facts"]}],
                    "tables": lambda tables: tables.update(
                        facts={"title": "f", "kind": "data", "datasets": []}
                    ),
                },
                "facts shows datasets, not results",
            ),
            ({"claims": [WINDOW]}, "largest needs within, of and metric"),
            (
                {"claims": [WINDOW | {"ratio": WINDOW["ratio"] | {"of": 5}}]},
                "claims: 1 .Long.: unknown value of p '5'",
            ),
            (claim({"equal": PLAIN}), r"claims\.0\.equal\.margin: Field required"),
            (
                claim({"equal": PLAIN | {"margin": 0.1}}),
                "give exactly one of better, no_worse, equal, trend, ratio, exists",
            ),
            ({"claims": [{"says": "x", "in": "table1", "exists": EXISTS}]}, "unknown method 'Other'"),
            (
                {"methods": lambda m: m["Plain"].pop("algorithm")},
                r"methods\.Plain\.algorithm: Field required",
            ),
        ],
    )
    def test_a_papers_mistakes_are_named_with_its_file(self, change: dict[str, Any], says: str) -> None:
        rewrite(**change)
        with pytest.raises(UserError, match=says) as caught:
            load_paper("toy")
        assert str(caught.value).startswith("config/papers/toy.yaml: ")

    def test_a_method_may_be_run_on_an_addition_alone(self) -> None:
        parts = {
            "methods": lambda methods: methods["Plain"].update(only={"dataset": ["Digits"]}),
            "figures": {},
        }
        rewrite(**parts)
        with pytest.raises(UserError, match="table1: Plain has only dataset Digits, not Printed"):
            load_paper("toy")
        rewrite(**parts, **table(additions=["Digits"]))
        assert load_paper("toy").tables["table1"].additions == ["Digits"]

    def test_a_claim_may_be_narrowed_to_a_value_that_only_the_default_is(self) -> None:
        rewrite(**claim({"only": {"imratio": 0.2}}))
        assert load_paper("toy").claims[0].only == {"imratio": [0.2]}

    def test_papers_are_the_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert configuration.paper_keys() == ["toy"]
        monkeypatch.chdir(CONFIG.parent)
        assert {"climb", "localscgdam"} <= set(configuration.paper_keys())


@pytest.mark.usefixtures("project")
def test_a_study_that_is_no_paper_has_a_folder_of_its_own_and_its_name_to_itself() -> None:
    mine = Path("config/studies/mine.yaml")
    write_yaml(mine, {"extends": "toy", "title": "Mine"})
    assert load_paper("mine").title == "Mine" and study_path("mine") == mine and "mine" in paper_keys()
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy"})
    with pytest.raises(UserError, match=r"config/studies/mine\.yaml and config/papers/mine\.yaml"):
        load_paper("mine")
