"""Choosing hyper-parameters: equal trials, validation score only, read back by the cells."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_trials import change, chosen, fake, fake_seeds, quiet
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store.provenance import commit
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train import workers
from fedbench.train.tune import choices
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")


def test_everything_can_be_tuned_apart_at_each_value_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Proximal"]["only"] = {"p": [2]}
    tables = copy.deepcopy(PAPER["tables"])
    tables["table1"]["settings"]["p"] = [2, 4, 8]
    tuning = PAPER["tune"] | {"setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}
    change(methods=methods, tune=tuning, tables=tables)
    asked = []

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        asked.append(spec.train.period)
        best = 0.01 if spec.train.period == 2 else 0.2
        score = float(spec.params["lr"] == best)
        return Record(spec.key, {}, "finished", "", {"val_auc": score}, {}, {})

    monkeypatch.setattr(workers, "train_run", train)
    config = configuration.load_config()
    paths = tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], quiet)
    assert [path.name for path in paths] == ["Digits_p2.yaml", "Digits_p4.yaml"]
    assert asked.count(2) == 8 and asked.count(4) == 4  # the second method has no cell at 4
    said = [yaml.safe_load(path.read_text()) for path in paths]
    assert [content["protocol"]["setting"]["p"] for content in said] == [2, 4]
    assert ["Proximal" in content["chosen"] for content in said] == [True, False]
    plain = [cell for cell in Plan(config, "toy").cells() if cell.method == "Plain"]
    result = {cell.setting["p"]: cell.runs[0].params["lr"] for cell in plain}
    assert result == {2: 0.01, 4: 0.2, 8: 0.1}  # at 8 nothing was tuned: the paper's value
    assert tune_dataset(config, "toy", "Digits", ["Proximal"], quiet) == paths, "nothing is asked for at 4"


def test_scores_in_the_file_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration.load_config()
    scores = {0.01: (0.6,), 0.1: (0.8, 0.75), 0.2: (None,), 0.5: (0.9, 0.4)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    (path,) = tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert "  - {lr: 0.1, val_auc: 0.8, runs: {" in path.read_text(), "a line for each trial"
    asked = list[int]()

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        asked.append(spec.seed)
        record: Record = fake_seeds(scores)(spec, config, store)
        return record

    monkeypatch.setattr(workers, "train_run", train)
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    told = list[str]()
    tune_dataset(config, "toy", "Digits", ["Plain"], told.append)
    assert "Digits Plain, trial 3 of 4, seed 100: diverged  {'lr': 0.2}" in told
    assert asked == [101, 101] and chosen("Plain") == {"lr": 0.1}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]

    # other runs: their scores count for none
    change(tune=PAPER["tune"] | {"seeds": [100, 101], "validation": 0.3})
    tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert asked[2:] == [100, 100, 100, 100, 101, 101]


def test_a_real_tuning_is_recorded_read_back_and_costs_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config, lines = configuration.load_config(), list[str]()
    before = {cell.method: cell.runs[0].params for cell in Plan(config, "toy").cells("table1")}
    (path,) = tune_dataset(config, "toy", "Digits", ["Plain", "Plain_too"], lines.append)
    assert path == Path("config/tuned/toy/Digits.yaml") and len(lines) == 10

    content = yaml.safe_load(path.read_text())
    assert content["protocol"]["seeds"] == [100]
    assert content["commits"] == {"Plain": commit(), "Plain_too": commit()}
    rows = content["scores"]["Plain"]
    assert [row["lr"] for row in rows] == [0.01, 0.1, 0.2, 0.5]
    for row in rows:
        ((key, score),) = row["runs"].items()
        record = Store().load(key)
        assert record is not None and round(record.metrics["val_auc"] or 0, 5) == score == row["val_auc"]
    best = max(rows, key=lambda row: row["val_auc"])
    assert content["chosen"]["Plain"] == {"lr": best["lr"]}

    after = {cell.method: cell.runs[0].params for cell in Plan(config, "toy").cells("table1")}
    assert after["Plain"] == content["chosen"]["Plain"]
    assert after["Plain_too"] == content["chosen"]["Plain_too"]
    assert after["Proximal"] == before["Proximal"]  # not tuned

    from fedbench.engine.simulate import Simulation

    monkeypatch.setattr(Simulation, "run", lambda self: pytest.fail("trained again"))
    text = path.read_text()
    tune_dataset(config, "toy", "Digits", ["Plain", "Plain_too"], quiet)
    assert path.read_text() == text


def test_tuning_another_method_keeps_the_earlier_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1} and chosen("Proximal") == {"lr": 0.1, "mu": 0.0}
    assert [*yaml.safe_load(path.read_text())["chosen"]] == ["Plain", "Proximal"], "in the order of the paper"


def test_two_tunings_at_a_time_keep_each_others_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    config, train = configuration.load_config(), fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1})

    def meanwhile(*args: Any) -> Record:
        monkeypatch.setattr(workers, "train_run", train)
        tune_dataset(config, "toy", "Digits", ["Proximal"], quiet)
        record: Record = train(*args)
        return record

    monkeypatch.setattr(workers, "train_run", meanwhile)
    tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1} and chosen("Proximal") == {"lr": 0.1, "mu": 0.0}


def test_choices_of_two_protocols_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    config, path = configuration.load_config(), Path("config/tuned/toy/Digits.yaml")
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1}))
    tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], quiet)
    before = path.read_text()
    monkeypatch.setattr(
        workers, "train_run", fake({0.01: 0.9, 0.1: 0.7, 0.2: 0.8, 0.3: 0.6, 0.5: 0.8, 0.05: 0.95})
    )
    change(tune=PAPER["tune"] | {"validation": 0.3})
    said = list[str]()
    tune_dataset(config, "toy", "Digits", ["Plain", "Plain_too"], said.append)
    tried = [line for line in said if line.startswith("Digits Plain, trial ")]
    assert tried[0].startswith("Digits Plain, trial 1 of 4, seed 100: val_auc ") and " left" in tried[0]
    assert any(line.startswith("Digits Plain, trial 2 of 4, seed 100: ") for line in tried)
    assert path.read_text() == before, "what stands there was compared another way"
    content = yaml.safe_load(before)
    content["commits"]["Plain"] = "old"
    path.write_text(yaml.dump(content))
    assert "Proximal were tuned with another protocol" in said[-1]
    assert "fedbench tune Digits Plain Plain_too Proximal --paper toy" in said[-1]
    assert "--set" not in said[-1]

    tune_dataset(config, "toy", "Digits", ["Proximal"], said.append)
    assert "Plain were tuned with another protocol" in said[-1]
    assert chosen("Proximal") == {"lr": 0.1, "mu": 0.0}
    tune_dataset(config, "toy", "Digits", ["Plain", "Plain_too", "Proximal"], said.append)
    result = yaml.safe_load(path.read_text())
    assert result["protocol"]["validation"] == 0.3
    assert chosen("Plain") == {"lr": 0.01} and chosen("Proximal") == {"lr": 0.05, "mu": 0.0}
    assert "old" not in result["commits"]["Plain"], "a run of the old protocol is none of these trials"
    assert {*result["scores"]} == {"Plain", "Proximal", "Plain_too"}
    assert said[-1].startswith("Digits Proximal: chosen")


def test_what_the_call_sets_is_part_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain", "Proximal"], quiet)
    said = list[str]()
    config = configuration.load_config(overrides={"set": {"train.iterations": 6}})
    tune_dataset(config, "toy", "Digits", ["Plain"], said.append)
    assert "Proximal were tuned with another protocol" in said[-1] and "with the same --set" in said[-1]


def test_a_tuning_that_was_cut_off_goes_on_from_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedbench.engine.simulate import Simulation

    config, path = configuration.load_config(), Path("config/tuned/toy/Digits.yaml")
    run, trained = Simulation.run, list[float]()

    def dies(self: Simulation) -> Any:
        trained.append(self.spec.params["lr"])
        if len(trained) == 3:
            raise KeyboardInterrupt
        return run(self)

    monkeypatch.setattr(Simulation, "run", dies)
    with pytest.raises(KeyboardInterrupt):
        tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert not path.exists(), "no cell may read a choice among some of the trials"
    said = list[str]()
    tune_dataset(config, "toy", "Digits", ["Plain"], said.append)
    assert trained == [0.01, 0.1, 0.2, 0.2, 0.5]
    timed = [line for line in said if " left" in line]
    assert len(timed) == 1 and "trial 3 of 4" in timed[0], "those of the store took no time"
    assert len(yaml.safe_load(path.read_text())["scores"]["Plain"]) == 4


@pytest.mark.parametrize("made", [{"runs": "54c0d0f21d332731"}, {"runs": {}, "short": ["54c0d0f21d332731"]}])
def test_a_file_of_another_form_is_named_and_kept(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "train_run", lambda *args: pytest.fail("trained"))
    path = Path("config/tuned/toy/Digits.yaml")
    scores = {"Plain": [{"lr": 0.1, "val_auc": 0.9, **made}]}
    write_yaml(path, {"chosen": {"Plain": {"lr": 0.1}}, "scores": scores})
    before = path.read_text()
    with pytest.raises(UserError, match=r"tuned/toy/Digits\.yaml: `scores` .*remove it"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert path.read_text() == before


@pytest.mark.parametrize("short", [False, True])
def test_scores_of_another_metric_are_measured_again(short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric is no part of a run's key."""
    asked = list[int]()

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        asked.append(spec.seed)
        metrics = {"val_auc": 1 - spec.params["lr"], "val_ap": spec.params["lr"]}
        return Record(spec.key, {}, "finished", "", metrics, {}, {})

    monkeypatch.setattr(workers, "train_run", train)
    tuning = PAPER["tune"] | {"stable": {"train": {"iterations": 2}, "seeds": [200], "reach": 0.0}}
    change(tune=tuning)
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert asked == [100] * 4 + [200] and chosen("Plain") == {"lr": 0.01}
    change(
        tune=tuning | ({"stable": tuning["stable"] | {"metric": "val_ap"}} if short else {"metric": "val_ap"})
    )
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert asked[5:] == ([200] if short else [100] * 4 + [200])
    (result,) = yaml.safe_load(path.read_text())["chosen"].values()
    assert result == {"lr": 0.01 if short else 0.5}


def test_a_metric_that_the_runs_lack_is_no_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"metric": "val_minority_accuracy"})
    monkeypatch.setattr(workers, "train_run", fake(dict.fromkeys((0.01, 0.1, 0.2, 0.5), 0.5)))
    with pytest.raises(UserError, match=r"tune\.metric on Digits: val_minority_accuracy is not measured"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


def test_a_metric_that_is_undefined_on_the_validation_part_is_no_divergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undefined = Record("k", {}, "finished", "", {"val_auc": None}, {}, {})
    monkeypatch.setattr(workers, "train_run", lambda *args: undefined)
    with pytest.raises(UserError, match=r"val_auc is undefined.*hold out more"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ({"seeds": [100, 100]}, "a seed is given twice"),
        ({"per_dataset": {"Digits": {"seeds": [7, 7]}}}, "a seed is given twice"),
        ({"metric": "test_auc"}, "not measured on validation data"),
        ({"metric": "val_acu"}, "Did you mean 'val_auc'"),
        ({"setting": {"q": 2}}, "unknown setting 'q'.*Known: imratio, p"),
        ({"each": {"q": [2]}}, "unknown setting 'q'.*Known: imratio, p"),
    ],
)
def test_slips_in_the_section_end_before_any_training(slip: dict[str, Any], said: str) -> None:
    change(tune=PAPER["tune"] | slip)
    with pytest.raises(UserError, match=rf"(?s)toy\.yaml.*{said}"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


def test_tuning_takes_no_seed_of_the_final_runs() -> None:
    config = configuration.load_config(overrides={"seeds": "3,100"})
    with pytest.raises(UserError, match="seed 100 is one of the final runs'"):
        tune_dataset(config, "toy", "Digits", ["Plain"], quiet)


def test_unknown_names_and_missing_sections_are_named() -> None:
    config = configuration.load_config()
    with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
        tune_dataset(config, "toy", "Digit", None, quiet)
    with pytest.raises(UserError, match=r"unknown method of toy 'plain'.*'Plain'"):
        tune_dataset(config, "toy", "Digits", ["plain"], quiet)
    change(tune=None)
    with pytest.raises(UserError, match="no section `tune`"):
        tune_dataset(config, "toy", "Digits", None, quiet)


def test_a_list_that_several_trials_share_is_written_out_each_time() -> None:
    shared = [0.5, 0.75]
    text = yaml.dump({"one": shared, "other": shared}, Dumper=choices._Dumper, default_flow_style=None)
    assert text == "one: [0.5, 0.75]\nother: [0.5, 0.75]\n"
