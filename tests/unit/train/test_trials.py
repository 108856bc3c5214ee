"""What tuning tries: grids, and the runs of a trial."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from fake_trials import change, fake, quiet
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import workers
from fedbench.train.tune.trials import trial_specs, trials_of
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")


def test_a_grid_is_all_combinations_and_coupled_keys_move_together() -> None:
    paper = configuration.load_paper("toy")
    assert trials_of(paper, paper.methods["Proximal"], "Proximal") == [
        {"lr": 0.05, "mu": 0.0}, {"lr": 0.05, "mu": 1.0}, {"lr": 0.1, "mu": 0.0}, {"lr": 0.1, "mu": 1.0},
    ]  # fmt: skip
    coupled = trials_of(paper, paper.methods["Plain_too"], "Plain_too")
    assert coupled == [
        {"lr": lr, "momentum": m} for lr, m in ((0.1, 0.5), (0.2, 0.5), (0.2, 0.9), (0.3, 0.0))
    ]


def test_a_grid_reaches_any_place_of_a_run_and_wins_over_what_trials_share() -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["grid"] = {
        "lr, train.decay_at": [[0.1, [0.5]], [0.2, [0.25, 0.5]]],
        "train.clip_norm": [None, 1],
    }
    change(methods=methods, tune=PAPER["tune"] | {"train": {"epochs": None, "rounds": 4, "decay_at": []}})
    paper = configuration.load_paper("toy")
    trials = trials_of(paper, paper.methods["Plain"], "Plain")
    runs = [trial_specs(paper, "Digits", "Plain", trial)[0] for trial in trials]
    assert [(run.params["lr"], run.train.decay_at, run.train.clip_norm) for run in runs] == [
        (0.1, (0.5,), None), (0.1, (0.5,), 1), (0.2, (0.25, 0.5), None), (0.2, (0.25, 0.5), 1),
    ]  # fmt: skip
    assert all(run.data.validation == 0.2 and run.train.rounds == 4 for run in runs)


def test_the_validation_part_may_be_that_of_the_runs_but_there_has_to_be_one() -> None:
    tuning = {key: value for key, value in PAPER["tune"].items() if key != "validation"}
    change(tune=tuning)
    with pytest.raises(UserError, match="nothing of Digits is held out to tune on; give `validation`"):
        trial_specs(configuration.load_paper("toy"), "Digits", "Plain", {"lr": 0.1})
    datasets = copy.deepcopy(PAPER["datasets"])
    datasets["Digits"]["data"]["validation"] = 0.4
    change(tune=tuning, datasets=datasets)
    (run,) = trial_specs(configuration.load_paper("toy"), "Digits", "Plain", {"lr": 0.1})
    assert run.data.validation == 0.4


def test_a_method_without_a_cell_where_the_others_are_tuned_is_tuned_at_its_first() -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["only"], methods["Proximal"]["only"] = {"p": [4, 8]}, {"p": [8, 2, 4]}
    change(methods=methods)
    paper = configuration.load_paper("toy")
    assert trial_specs(paper, "Digits", "Plain", {})[0].train.period == 4
    assert trial_specs(paper, "Digits", "Proximal", {})[0].train.period == 2


def test_every_method_gets_the_same_number_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["grid"]["lr"] = [0.1]
    change(methods=methods)
    with pytest.raises(UserError, match="grid of Plain has 1 combinations, but every method gets 4"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    monkeypatch.chdir(Path(__file__).parents[3])
    for key in configuration.paper_keys():
        real = configuration.load_paper(key)
        for name, method in real.methods.items():
            if method.grid:
                assert len(trials_of(real, method, name)) == real.tune.trials  # type: ignore[union-attr]


def test_a_method_without_a_grid_is_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    del methods["Proximal"]["grid"]
    change(methods=methods)
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.1, 0.1: 0.9, 0.2: 0.5, 0.3: 0.4, 0.5: 0.3}))
    said: list[str] = []
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", None, said.append)
    assert [*yaml.safe_load(path.read_text())["chosen"]] == ["Plain", "Plain_too"]
    assert said[0] == "not tuned, as config/papers/toy.yaml gives no grid: Proximal"
    with pytest.raises(UserError, match=r"toy\.yaml: methods\.Proximal has no grid"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain", "Proximal"], quiet)


def test_tuned_are_the_methods_with_a_grid_that_a_dataset_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "train_run", fake(dict.fromkeys((0.01, 0.05, 0.1, 0.2, 0.3, 0.5), 0.5)))
    methods, tables = copy.deepcopy(PAPER["methods"]), copy.deepcopy(PAPER["tables"])
    methods["Fixed"] = {"algorithm": "fedavg", "params": {"lr": 0.1}}
    methods["Elsewhere"] = copy.deepcopy(methods["Plain"])
    change(methods=methods)
    tune_dataset(configuration.load_config(), "toy", "Digits", None, quiet)
    result = yaml.safe_load(Path("config/tuned/toy/Digits.yaml").read_text())["chosen"]
    shown = {name for spec in tables.values() for name in spec["methods"]}
    assert result.keys() == shown and not {"Fixed", "Elsewhere"} & shown


def test_trials_hold_data_out_and_have_a_seed_of_their_own() -> None:
    paper = configuration.load_paper("toy")
    (spec,) = trial_specs(paper, "Digits", "Proximal", {"lr": 0.05, "mu": 1.0})
    assert spec.data.validation == 0.2 and spec.seed == 100
    assert spec.train.iterations == 4 and spec.train.epochs is None and spec.train.period == 2
    assert spec.params == {"lr": 0.05, "mu": 1.0} and spec.data.imbalance.imratio == 0.2
    final = Plan(configuration.load_config(), "toy").cells()[0].runs[0]
    assert final.data.validation == 0 and final.seed != 100


def test_trials_on_a_dataset_can_be_longer_and_its_file_says_how_long_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": {"train": {"iterations": 12}, "validation": 0.3}}})
    paper = configuration.load_paper("toy")
    params = {"lr": 0.05, "mu": 1.0}
    assert trial_specs(paper, "Digits", "Proximal", params)[0].train.iterations == 12
    assert trial_specs(paper, "Printed", "Proximal", params)[0].train.iterations == 4
    held_out = {
        name: trial_specs(paper, name, "Proximal", params)[0].data.validation for name in paper.datasets
    }
    assert held_out["Digits"] == 0.3 and held_out["Printed"] == 0.2
    monkeypatch.setattr(workers, "train_run", fake({0.05: 0.7, 0.1: 0.9}))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    protocol = yaml.safe_load(path.read_text())["protocol"]
    assert protocol["train"]["iterations"] == 12 and protocol["validation"] == 0.3
    assert "per_dataset" not in protocol

    change(tune=PAPER["tune"] | {"per_dataset": {"Digit": {"train": {"iterations": 12}}}})
    with pytest.raises(UserError, match=r"papers/toy\.yaml: tune: unknown dataset 'Digit'.*'Digits'"):
        configuration.load_paper("toy")


def test_a_dataset_can_have_fewer_trials_the_first_of_each_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": {"trials": 2}}})
    paper = configuration.load_paper("toy")
    monkeypatch.setattr(workers, "train_run", fake({0.05: 0.7, 0.1: 0.9}))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    tuned = yaml.safe_load(path.read_text())
    assert tuned["protocol"]["trials"] == 2
    first = trials_of(paper, paper.methods["Proximal"], "Proximal")[:2]
    assert [{"lr": row["lr"], "mu": row["mu"]} for row in tuned["scores"]["Proximal"]] == first
    assert tuned["chosen"]["Proximal"]["lr"] == 0.05  # that of the third would have been better

    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": {"trials": 4}}})
    assert len(configuration.load_paper("toy").methods) == 3, "all of them are no mistake"
    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": {"trials": 5}}})
    with pytest.raises(UserError, match=r"per_dataset\.Digits\.trials: 5 are more than the 4"):
        configuration.load_paper("toy")


def test_trials_ignore_earlier_choices() -> None:
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Proximal": {"lr": 9.0, "mu": 9.0}}})
    (spec,) = trial_specs(configuration.load_paper("toy"), "Digits", "Proximal", {"lr": 0.05})
    assert spec.params == {"lr": 0.05, "mu": 0.1}
