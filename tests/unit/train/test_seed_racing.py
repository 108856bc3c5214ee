"""Which trial gets another seed, and which one wins."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from fake_trials import change, chosen, fake_seeds
from toy import PAPER

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.train import workers
from fedbench.train.tune.trials import trial_specs
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")
Scores = dict[float, tuple[float | None, ...]]
RACES: dict[str, tuple[Scores, float]] = {
    "best with one seed, best but for a divergence, never ahead": (
        {0.01: (0.99, 0.41), 0.1: (0.8, 0.9), 0.2: (0.7,), 0.5: (1.0, None)}, 0.1,
    ),
    "the lead changes with later seeds": (
        {0.01: (0.6,), 0.1: (0.8, 0.7), 0.2: (0.79, 0.78, 0.77), 0.5: (0.95, 0.4)}, 0.2,
    ),
    "a trial that diverges with a later seed is out": (
        {0.01: (0.6,), 0.1: (0.8, 0.7, 0.6), 0.2: (0.79, None), 0.5: (0.95, 0.4)}, 0.1,
    ),
    "ties go on together, and an easy seed is no lead": (
        {0.01: (0.8, 0.9), 0.1: (0.8, 0.95, 0.9), 0.2: (0.8, 0.9), 0.5: (0.7,)}, 0.1,
    ),
    "ahead on the seeds in common although behind in the mean": (
        {0.01: (0.8, 0.5, None), 0.1: (0.5, 0.5, 0.9), 0.2: (0.7, 0.3, 0.7), 0.5: (0.9, None)}, 0.1,
    ),
    "tied with the mean of the leader": ({0.01: (0.75, 0.25), 0.1: (0.5, 0.75), 0.2: (0.1,), 0.5: (0.1,)}, 0.1),
    "one seed: ties go to the earlier": ({0.01: (0.7,), 0.1: (0.9,), 0.2: (0.9,), 0.5: (0.8,)}, 0.1),
    "what diverges is behind 0": ({0.01: (0.0,), 0.1: (None,), 0.2: (None,), 0.5: (None,)}, 0.01),
}  # fmt: skip
"""The validation score of each step size with the seeds that it gets, and the one that wins."""


def race(
    scores: Scores, seeds: int, monkeypatch: pytest.MonkeyPatch, **parts: Any
) -> tuple[list[Any], list[str]]:
    """Tune the toy paper with so many seeds; return the rows of its file and what was said."""
    change(tune=PAPER["tune"] | {"seeds": [*range(100, 100 + seeds)]}, **parts)
    monkeypatch.setattr(workers, "train_run", fake_seeds(scores))
    said = list[str]()
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], said.append)
    return yaml.safe_load(path.read_text())["scores"]["Plain"], said


@pytest.mark.parametrize("case", RACES)
def test_who_leads_gets_another_seed_until_it_has_all(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not in the table would be an IndexError."""
    scores, winner = RACES[case]
    rows, _ = race(scores, max(map(len, scores.values())), monkeypatch)
    assert chosen("Plain") == {"lr": winner}
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]
    means = [None if None in made else round(sum(made) / len(made), 5) for made in scores.values()]  # type: ignore[arg-type]
    assert [row["val_auc"] for row in rows] == means


def test_the_choice_is_told_with_its_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = race(RACES["ties go on together, and an easy seed is no lead"][0], 3, monkeypatch)
    assert said[-1] == (
        "Digits Plain: chosen {'lr': 0.1}, val_auc 0.88333 over 3 seeds;"
        " {'lr': 0.01} is 0.02500 behind on the 2 seeds they share"
    )


def test_of_a_metric_that_falls_the_lowest_score_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = {"val_auc": {"label": "loss", "better": "lower"}}
    scores: Scores = {0.01: (0.6,), 0.1: (0.3,), 0.2: (0.5,), 0.5: (0.7,)}
    _, said = race(scores, 1, monkeypatch, measures=falling)
    assert chosen("Plain") == {"lr": 0.1} and "{'lr': 0.2} is 0.20000 behind" in said[-1]


def test_where_every_trial_diverges_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    scores: Scores = {0.01: (None,), 0.1: (0.8, None), 0.2: (None,), 0.5: (0.7, None)}
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged.*config/papers/toy\.yaml"):
        race(scores, 2, monkeypatch)


def test_a_dataset_may_have_seeds_of_its_own() -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Printed": {"seeds": [7]}}})
    paper = configuration.load_paper("toy")
    assert [spec.seed for spec in trial_specs(paper, "Printed", "Plain", {"lr": 0.1})] == [7]
