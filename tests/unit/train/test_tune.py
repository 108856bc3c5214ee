"""Choosing hyper-parameters: grids, equal trials, validation score only, read back by the cells."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_trials import PATH, Fake, change, fake, standing_in, tune
from toy import PAPER, write_yaml

from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store.provenance import commit
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import workers
from fedbench.train.tune.trials import trial_specs, trials_of
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")
SAME = dict.fromkeys((0.01, 0.05, 0.1, 0.2, 0.3, 0.5), 0.5)


def runs(dataset: str, method: str, params: dict[str, Any], **given: Any) -> list[RunSpec]:
    return trial_specs(configuration.load_paper("toy"), dataset, method, params, given)


def test_a_grid_is_all_combinations_and_coupled_keys_move_together() -> None:
    paper = configuration.load_paper("toy")
    assert trials_of(paper, paper.methods["Proximal"], "Proximal") == [
        {"lr": 0.05, "mu": 0.0}, {"lr": 0.05, "mu": 1.0}, {"lr": 0.1, "mu": 0.0}, {"lr": 0.1, "mu": 1.0},
    ]  # fmt: skip
    coupled = trials_of(paper, paper.methods["Plain_too"], "Plain_too")
    assert coupled == [
        {"lr": lr, "momentum": m} for lr, m in ((0.1, 0.5), (0.2, 0.5), (0.2, 0.9), (0.3, 0.0))
    ]


def test_a_grid_reaches_any_place_of_a_run_and_wins_over_what_trials_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["grid"] = {
        "lr, train.decay_at": [[0.1, [0.5]], [0.2, [0.25, 0.5]]],
        "train.clip_norm": [None, 1],
    }
    change(methods=methods, tune=PAPER["tune"] | {"train": {"epochs": None, "rounds": 4, "decay_at": []}})
    trained = fake(monkeypatch, SAME)
    assert tune("Plain")["chosen"]["Plain"]["train.decay_at"] == [0.5]
    assert [(run.params["lr"], run.train.decay_at, run.train.clip_norm) for run in trained.asked] == [
        (0.1, (0.5,), None), (0.1, (0.5,), 1), (0.2, (0.25, 0.5), None), (0.2, (0.25, 0.5), 1),
    ]  # fmt: skip
    assert all(run.data.validation == 0.2 and run.train.rounds == 4 for run in trained.asked)
    assert "&" not in PATH.read_text(), "a list that trials share is written out each time"


def test_trials_hold_data_out_ignore_earlier_choices_and_take_what_the_call_sets() -> None:
    write_yaml(PATH, {"chosen": {"Proximal": {"lr": 9.0, "mu": 9.0}}})
    (spec,) = runs("Digits", "Proximal", {"lr": 0.05})
    assert spec.params == {"lr": 0.05, "mu": 0.1} and spec.seed == 100
    assert spec.data.validation == 0.2 and spec.data.imbalance.imratio == 0.2
    assert spec.train.iterations == 4 and spec.train.epochs is None and spec.train.period == 2
    (spec,) = runs("Digits", "Proximal", {"lr": 0.05}, **{"train.iterations": 3, "params.lr": 0.3})
    assert (spec.train.iterations, spec.params["lr"]) == (3, 0.3)


def test_the_validation_part_may_be_that_of_the_runs_but_there_has_to_be_one() -> None:
    tuning = {key: value for key, value in PAPER["tune"].items() if key != "validation"}
    change(tune=tuning)
    with pytest.raises(UserError, match="nothing of Digits is held out to tune on; give `validation`"):
        runs("Digits", "Plain", {"lr": 0.1})
    datasets = copy.deepcopy(PAPER["datasets"])
    datasets["Digits"]["data"]["validation"] = 0.4
    change(tune=tuning, datasets=datasets)
    assert runs("Digits", "Plain", {"lr": 0.1})[0].data.validation == 0.4


def test_a_method_without_a_cell_where_the_others_are_tuned_is_tuned_at_its_first() -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["only"], methods["Proximal"]["only"] = {"p": [4, 8]}, {"p": [8, 2, 4]}
    change(methods=methods)
    assert [runs("Digits", name, {})[0].train.period for name in ("Plain", "Proximal")] == [4, 2]


def test_every_method_gets_the_same_number_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["grid"]["lr"] = [0.1]
    change(methods=methods)
    with pytest.raises(UserError, match="grid of Plain has 1 combinations, but every method gets 4"):
        tune("Plain")
    monkeypatch.chdir(Path(__file__).parents[3])
    for key in configuration.paper_keys():
        real = configuration.load_paper(key)
        for name, method in real.methods.items():
            if method.grid:
                assert real.tune is not None and len(trials_of(real, method, name)) == real.tune.trials


def test_tuned_are_the_methods_with_a_grid_that_a_dataset_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, SAME)
    methods, said = copy.deepcopy(PAPER["methods"]), list[str]()
    methods["Elsewhere"] = copy.deepcopy(methods["Plain"])
    del methods["Proximal"]["grid"]
    change(methods=methods)
    assert [*tune(said=said)["chosen"]] == ["Plain", "Plain_too"]
    assert said[0] == "not tuned, as config/papers/toy.yaml gives no grid: Proximal"
    with pytest.raises(UserError, match=r"toy\.yaml: methods\.Proximal has no grid"):
        tune("Plain", "Proximal")
    del methods["Plain"]["grid"], methods["Plain_too"]["grid"]
    change(methods=methods)
    with pytest.raises(UserError, match=r"toy\.yaml: no method has a grid"):
        tune()


def test_a_dataset_can_have_trials_of_its_own_and_its_file_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer ones, other seeds, and fewer: the first of each grid."""
    digits_alone = {"train": {"iterations": 12}, "validation": 0.3, "trials": 2, "seeds": [7]}
    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": digits_alone}})
    (digits,), (printed,) = (runs(name, "Proximal", {}) for name in ("Digits", "Printed"))
    assert (digits.train.iterations, digits.data.validation, digits.seed) == (12, 0.3, 7)
    assert (printed.train.iterations, printed.data.validation, printed.seed) == (4, 0.2, 100)
    trained = fake(monkeypatch, {0.05: 0.7, 0.1: 0.9})
    content = tune("Proximal")
    assert content["protocol"].items() >= {"trials": 2, "validation": 0.3}.items()
    assert content["protocol"]["train"]["iterations"] == 12 and "per_dataset" not in content["protocol"]
    tried = [{"lr": row["lr"], "mu": row["mu"]} for row in content["scores"]["Proximal"]]
    assert tried == [{"lr": 0.05, "mu": 0.0}, {"lr": 0.05, "mu": 1.0}] and trained.seeds == [7, 7]
    assert content["chosen"]["Proximal"]["lr"] == 0.05, "that of the third would have been better"


SCORES = {0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.3: 0.6, 0.5: 0.8, 0.05: 0.1}


def test_everything_can_be_tuned_apart_at_each_value_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    methods, tables = copy.deepcopy(PAPER["methods"]), copy.deepcopy(PAPER["tables"])
    methods["Proximal"]["only"] = {"p": [2]}
    tables["table1"]["settings"]["p"] = [2, 4, 8]
    tuning = PAPER["tune"] | {"setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}
    change(methods=methods, tune=tuning, tables=tables)
    best = {2: 0.01, 4: 0.2}
    trained = standing_in(
        monkeypatch,
        Fake(lambda spec: {"val_auc": float(spec.params["lr"] == best[spec.train.period or 0])}),
    )
    config = configuration.load_config()
    paths = tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], print)
    assert [path.name for path in paths] == ["Digits_p2.yaml", "Digits_p4.yaml"]
    periods = [spec.train.period for spec in trained.asked]
    assert periods.count(2) == 8 and periods.count(4) == 4  # the second method has no cell at 4
    said = [yaml.safe_load(path.read_text()) for path in paths]
    assert [content["protocol"]["setting"]["p"] for content in said] == [2, 4]
    assert ["Proximal" in content["chosen"] for content in said] == [True, False]
    plain = [cell for cell in Plan(config, "toy").cells() if cell.method == "Plain"]
    result = {cell.setting["p"]: cell.runs[0].params["lr"] for cell in plain}
    assert result == {**best, 8: 0.1}  # at 8 nothing was tuned: the paper's value
    assert tune_dataset(config, "toy", "Digits", ["Proximal"], print) == paths, "nothing is asked for at 4"


def test_scores_in_the_file_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {0.01: (0.6,), 0.1: (0.8, 0.75), 0.2: (None,), 0.5: (0.9, 0.4)}
    trained, told = fake(monkeypatch, scores), list[str]()
    tune("Plain", said=told)
    assert any("trial 3 of 4, seed 100: diverged" in line for line in told)
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    content = tune("Plain", said=told)
    assert told[-1] == "Digits Plain: chosen {'lr': 0.1}, val_auc 0.775 over 2 seeds"
    assert trained.seeds == [100] * 4 + [101] * 2 and content["chosen"]["Plain"] == {"lr": 0.1}
    assert [[*row["runs"].values()] for row in content["scores"]["Plain"]] == [*map(list, scores.values())]
    change(tune=PAPER["tune"] | {"seeds": [100, 101], "validation": 0.3})
    tune("Plain")
    assert trained.seeds[6:] == [100] * 4 + [101] * 2, "the scores of other runs count for none"


def test_a_real_tuning_is_recorded_read_back_and_costs_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def params() -> dict[str, Any]:
        cells = Plan(configuration.load_config(), "toy").cells("table1")
        return {cell.method: cell.runs[0].params for cell in cells}

    before = params()
    content = tune("Plain", "Plain_too")
    assert content["protocol"]["seeds"] == [100]
    assert content["commits"] == {"Plain": commit(), "Plain_too": commit()}
    rows = content["scores"]["Plain"]
    assert [row["lr"] for row in rows] == [0.01, 0.1, 0.2, 0.5]
    for row in rows:
        ((key, score),) = row["runs"].items()
        record = Store().load(key)
        assert record is not None and round(record.metrics["val_auc"] or 0, 5) == score == row["val_auc"]
    assert content["chosen"]["Plain"] == {"lr": max(rows, key=lambda row: row["val_auc"])["lr"]}
    assert params() == before | content["chosen"], "Proximal was not tuned"

    monkeypatch.setattr(Simulation, "run", lambda self: pytest.fail("trained again"))
    text = PATH.read_text()
    tune("Plain", "Plain_too")
    assert PATH.read_text() == text


def test_two_tunings_at_a_time_keep_each_others_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    train = fake(monkeypatch, SCORES)

    def meanwhile(*args: Any) -> Record:
        monkeypatch.setattr(workers, "train_run", train)
        tune("Proximal")
        return train(*args)

    monkeypatch.setattr(workers, "train_run", meanwhile)
    chosen = tune("Plain")["chosen"]
    assert [*chosen.items()] == [("Plain", {"lr": 0.1}), ("Proximal", {"lr": 0.1, "mu": 0.0})], (
        "in the order of the paper"
    )


def test_choices_of_two_protocols_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, SCORES)
    tune("Plain", "Proximal")
    content = yaml.safe_load(PATH.read_text())
    content["commits"]["Plain"] = "old"
    before = yaml.dump(content)
    PATH.write_text(before)
    said = list[str]()
    tune("Plain", said=said, set={"train.iterations": 6})
    assert PATH.read_text() == before and "--set" in said[-1], "what a call sets is part of the protocol"

    fake(monkeypatch, SCORES | {0.01: 0.95, 0.05: 0.95})
    change(tune=PAPER["tune"] | {"validation": 0.3})
    tune("Plain", "Plain_too", said=said)
    assert PATH.read_text() == before, "what stands there was compared another way"
    assert "fedbench tune Digits Plain Plain_too Proximal --paper toy)" in said[-1]
    tune("Proximal", said=said)
    assert PATH.read_text() == before and "Plain were tuned with another protocol" in said[-1]
    result = tune("Plain", "Plain_too", "Proximal", said=said)
    assert result["protocol"]["validation"] == 0.3
    assert [*result["chosen"].values()][:2] == [{"lr": 0.01}, {"lr": 0.05, "mu": 0.0}]
    assert "old" not in result["commits"]["Plain"], "a run of the old protocol is none of these trials"
    assert said[-1].startswith("Digits Proximal: chosen")


def test_a_tuning_that_was_cut_off_goes_on_from_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    run, trained = Simulation.run, list[float]()

    def dies(self: Simulation) -> Any:
        trained.append(self.spec.params["lr"])
        if len(trained) == 3:
            raise KeyboardInterrupt
        return run(self)

    monkeypatch.setattr(Simulation, "run", dies)
    with pytest.raises(KeyboardInterrupt):
        tune("Plain")
    assert not PATH.exists(), "no cell may read a choice among some of the trials"
    assert len(tune("Plain")["scores"]["Plain"]) == 4
    assert trained == [0.01, 0.1, 0.2, 0.2, 0.5]


@pytest.mark.parametrize("short", [False, True])
def test_scores_of_another_metric_are_measured_again(short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric is no part of a run's key."""
    trained = standing_in(
        monkeypatch, Fake(lambda spec: {"val_auc": 1 - spec.params["lr"], "val_ap": spec.params["lr"]})
    )
    stable = {"train": {"iterations": 2}, "seeds": [200], "reach": 0.0}
    change(tune=PAPER["tune"] | {"stable": stable})
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.01} and trained.seeds == [100] * 4 + [200]
    other = {"stable": stable | {"metric": "val_ap"}} if short else {"stable": stable, "metric": "val_ap"}
    change(tune=PAPER["tune"] | other)
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.01 if short else 0.5}
    assert trained.seeds[5:] == ([200] if short else [100] * 4 + [200])


STABLE = {"train": {"iterations": 2}, "setting": {"p": 1}, "seeds": [200, 201]}


def test_short_runs_have_a_setting_of_their_own_and_are_kept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second tuning finds all in the file; the one of another protocol finds what it shares."""
    diverging = {0.1: 201}  # of the two that lead

    def metrics(spec: RunSpec) -> dict[str, float]:
        lr = spec.params["lr"]
        return {} if spec.seed == diverging.get(lr) else {"val_auc": SCORES[lr]}

    trained = standing_in(monkeypatch, Fake(metrics))
    tuning = PAPER["tune"] | {"stable": STABLE}
    change(tune=tuning)
    content = tune("Plain")
    assert content["protocol"]["stable"] == STABLE | {"reach": None}
    assert content["chosen"]["Plain"] == {"lr": 0.2} and trained.seeds == [100] * 4 + [200, 201] * 2
    short = {(run.train.iterations, run.train.period, run.data.validation) for run in trained.asked[4:]}
    assert short == {(2, 1, 0.2)}
    before = PATH.read_bytes()
    tune("Plain")
    assert len(trained.asked) == 8 and PATH.read_bytes() == before
    change(tune=tuning | {"stable": STABLE | {"seeds": [200, 202]}})
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.1} and trained.seeds[8:] == [202] * 2
    change(tune=PAPER["tune"])
    assert "stable" not in tune("Plain")["protocol"], (
        "files from before there were short runs stay as they were"
    )
    diverging |= dict.fromkeys(SCORES, 100)
    PATH.unlink()
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged.*config/papers/toy\.yaml"):
        tune("Plain")


def test_a_dataset_can_have_short_runs_of_its_own() -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Printed": {"stable": STABLE, "metric": "val_ap"}}})
    paper = configuration.load_paper("toy")
    assert paper.tune is not None
    of = {name: len(runs(name, "Plain", {"lr": 0.1})) for name in ("Digits", "Printed")}
    assert [(paper.tune.on(name).metric, count) for name, count in of.items()] == [
        ("val_auc", 1),
        ("val_ap", 3),
    ]


@pytest.mark.parametrize(
    ("slip", "key"),
    [
        ({"seeds": [100, 100]}, "a seed is given twice"),
        ({"per_dataset": {"Digits": {"seeds": [7, 7]}}}, "a seed is given twice"),
        ({"per_dataset": {"Digit": {}}}, "unknown dataset 'Digit'.*'Digits'"),
        ({"per_dataset": {"Digits": {"trials": 5}}}, r"per_dataset\.Digits\.trials: 5"),
        ({"metric": "test_auc"}, "not measured on validation data"),
        ({"metric": "val_acu"}, "Did you mean 'val_auc'"),
        ({"metric": "val_minority_accuracy"}, r"tune\.metric on Digits: val_minority_accuracy"),
        ({"setting": {"q": 2}}, "unknown setting 'q'.*Known: imratio, p"),
        ({"each": {"q": [2]}}, "unknown setting 'q'.*Known: imratio, p"),
        ({"seeds": [1]}, "seed 1 is one of the final runs'"),
        ({"stable": STABLE | {"seeds": [200, 200]}}, "a seed is given twice"),
        ({"stable": STABLE | {"setting": {"q": 1}}}, "unknown setting 'q'"),
        ({"stable": STABLE | {"seeds": [100, 200]}}, r"stable\.seeds: 100"),
        ({"stable": STABLE | {"seeds": [0, 200]}}, "seed 0 is one of the final runs'"),
        ({"stable": STABLE | {"train": {"iteration": 2}}}, "iteration"),
        ({"stable": STABLE | {"metric": "val_nothing"}}, r"tune\.stable\.metric"),
        ({"stable": STABLE, "per_dataset": {"Digits": {"seeds": [200]}}}, r"stable\.seeds: 200"),
        ({"stable": STABLE, "setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}, r"stable\.setting\.p: `each`"),
    ],
)  # fmt: skip
def test_slips_in_the_section_end_before_any_training(
    slip: dict[str, Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = fake(monkeypatch, SCORES)
    change(tune=PAPER["tune"] | slip)
    with pytest.raises(UserError, match=f"(?s)toy.*{key}"):
        tune("Plain")
    assert trained.asked == []


def test_a_metric_that_is_undefined_on_the_validation_part_is_no_divergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standing_in(monkeypatch, Fake(lambda spec: {"val_auc": None}))
    with pytest.raises(UserError, match="val_auc is undefined"):
        tune("Plain")


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("", "chosen"),
        ("chosen: 3", "chosen"),
        ("chosen: {Plain: 3}", "chosen"),
        ("chosen: {1: {lr: 1}}", "chosen"),
        ("chosen: {Plain: {1: 2}}", "chosen"),
        ("chosen: {}\nscores: .nan", "scores"),
        ("chosen: {}\nscores: {Plain: [0.5]}", "scores"),
        ("chosen: {}\nscores: {Plain: [{lr: 0.1, runs: 54c0d0f21d332731}]}", "scores"),
        ("chosen: {}\nscores: {Plain: [{lr: 0.1, short: [54c0d0f21d332731]}]}", "scores"),
        ("chosen: {}\nprotocol: 3", "protocol"),
        ("chosen: {}\nprotocol: {train: {iterations: 0}}", "protocol"),
        ("chosen: {}\nprotocol: {train: {epochs: [1]}}", "protocol"),
    ],
)
def test_a_file_of_another_form_is_named_and_kept(
    text: str, section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = fake(monkeypatch, SCORES)
    PATH.parent.mkdir(parents=True)
    PATH.write_text(text)
    with pytest.raises(UserError, match=rf"tuned/toy/Digits\.yaml: `{section}` .*remove"):
        tune("Plain")
    assert PATH.read_text() == text and trained.asked == []


def test_unknown_names_and_missing_sections_are_named() -> None:
    with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
        tune_dataset(configuration.load_config(), "toy", "Digit", None, print)
    with pytest.raises(UserError, match=r"unknown method of toy 'plain'.*'Plain'"):
        tune("plain")
    change(tune=None)
    with pytest.raises(UserError, match="no section `tune`"):
        tune()
