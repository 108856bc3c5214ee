"""Which trial gets another seed, and which one wins."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fake_trials import change, chosen, fake, fake_seeds, quiet
from toy import PAPER

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.train import workers
from fedbench.train.tune.trials import trial_specs
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")


def test_a_trial_is_judged_by_the_mean_over_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101], "per_dataset": {"Printed": {"seeds": [7]}}})
    # 0.01 is best with one of the seeds, 0.5 would be but for a divergence, 0.2 never leads
    scores = {0.01: (0.99, 0.41), 0.1: (0.8, 0.9), 0.2: (0.7,), 0.5: (1.0, None)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [row["val_auc"] for row in rows] == [0.7, 0.85, 0.7, None]
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]
    paper = configuration.load_paper("toy")
    assert [spec.seed for spec in trial_specs(paper, "Printed", "Plain", {"lr": 0.1})] == [7]


def test_the_trial_that_leads_runs_with_the_next_seed_until_it_has_run_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101, 102]})
    # 0.5 leads first and falls behind with its second seed, then 0.1 falls behind 0.2, which stays ahead with all
    scores = {0.01: (0.6,), 0.1: (0.8, 0.7), 0.2: (0.79, 0.78, 0.77), 0.5: (0.95, 0.4)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.2}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]
    assert [row["val_auc"] for row in rows] == [0.6, 0.75, 0.78, 0.675]

    path.unlink()
    monkeypatch.setattr(workers, "train_run", fake_seeds({**scores, 0.2: (0.79, None), 0.1: (0.8, 0.7, 0.6)}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}, "a trial that diverges with a later seed is out"


def test_ties_go_on_together_and_an_easier_seed_is_no_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101, 102]})
    # three tie on the first seed; the second is easy for all of them, so that its first taker must not win by it
    scores = {0.01: (0.8, 0.9, 0.9), 0.1: (0.8, 0.95, 0.9), 0.2: (0.8, 0.9), 0.5: (0.7,)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    said = list[str]()
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], said.append)
    assert chosen("Plain") == {"lr": 0.1}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [len(row["runs"]) for row in rows] == [2, 3, 2, 1]
    assert said[-1] == (
        "Digits Plain: chosen {'lr': 0.1}, val_auc 0.88333 over 3 seeds;"
        " {'lr': 0.01} is 0.02500 behind on the 2 seeds they share"
    )


def test_a_trial_ahead_on_the_seeds_in_common_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader's second seed was easy: its mean is above the other's first score, which is better all the same."""
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    scores = {0.01: (0.9, 0.6), 0.1: (0.85, 0.99), 0.2: (0.88, 0.99), 0.5: (0.1,)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    # 0.01 leads, collapses; 0.2 runs and leads; 0.1 is behind 0.2 on the seed both have, and in its mean
    assert chosen("Plain") == {"lr": 0.2}


def test_a_trial_that_ties_with_the_mean_of_the_leader_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    scores = {0.01: (0.75, 0.25), 0.1: (0.5, 0.75), 0.2: (0.1,), 0.5: (0.1,)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}


def test_the_best_validation_score_wins_and_ties_go_to_the_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}


def test_of_a_metric_that_falls_the_lowest_score_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    change(tune=PAPER["tune"], measures={"val_auc": {"label": "loss", "better": "lower"}})
    scores = {0.01: (0.6,), 0.1: (0.3,), 0.2: (0.5,), 0.5: (0.7,)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], told.append)
    assert chosen("Plain") == {"lr": 0.1}
    assert "{'lr': 0.2} is 0.20000 behind" in told[-1]


def test_diverged_trials_score_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "train_run", fake({0.01: 0.0, 0.1: None, 0.2: None, 0.5: None}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.01}
    Path("config/tuned/toy/Digits.yaml").unlink()
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    scores = {0.01: (None,), 0.1: (0.8, None), 0.2: (None,), 0.5: (0.7, None)}
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged.*config/papers/toy\.yaml"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
