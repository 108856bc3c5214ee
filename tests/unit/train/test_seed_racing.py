"""Which trial gets another seed and which one wins; the short runs that the trial in the lead must survive."""

from __future__ import annotations

from typing import Any

import pytest
from fake_trials import PATH, Fake, change, fake, standing_in, tune
from toy import PAPER

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study import configuration
from fedbench.train.tune.trials import trial_specs

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
FALLING = {"val_auc": {"label": "loss", "better": "lower"}, "val_ap": {"label": "loss", "better": "lower"}}


def race(
    scores: Scores, seeds: int, monkeypatch: pytest.MonkeyPatch, **parts: Any
) -> tuple[dict[str, Any], list[str]]:
    """Tune the toy paper with so many seeds; return its file and what was said."""
    change(tune=PAPER["tune"] | {"seeds": [*range(100, 100 + seeds)]}, **parts)
    fake(monkeypatch, scores)
    said = list[str]()
    return tune("Plain", said=said), said


@pytest.mark.parametrize("case", RACES)
def test_who_leads_gets_another_seed_until_it_has_all(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not in the table would be an IndexError."""
    scores, winner = RACES[case]
    content, _ = race(scores, max(map(len, scores.values())), monkeypatch)
    rows = content["scores"]["Plain"]
    assert content["chosen"]["Plain"] == {"lr": winner}
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
    scores: Scores = {0.01: (0.6,), 0.1: (0.3,), 0.2: (0.5,), 0.5: (0.7,)}
    content, said = race(scores, 1, monkeypatch, measures=FALLING)
    assert content["chosen"]["Plain"] == {"lr": 0.1} and "{'lr': 0.2} is 0.20000 behind" in said[-1]


def test_where_every_trial_diverges_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    scores: Scores = {0.01: (None,), 0.1: (0.8, None), 0.2: (None,), 0.5: (0.7, None)}
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged.*config/papers/toy\.yaml"):
        race(scores, 2, monkeypatch)


STABLE = {"train": {"iterations": 2}, "setting": {"p": 1}, "seeds": [200, 201, 202]}
TUNE = PAPER["tune"] | {"seeds": [100, 101], "stable": STABLE}
SCORES = {0.01: 0.7, 0.1: 0.8, 0.2: 0.9, 0.5: 0.6}


def short_runs(monkeypatch: pytest.MonkeyPatch, *diverging: float) -> Fake:
    """Let short runs end at 0.3 to 0.302, but for some step sizes that diverge in one of them."""

    def metrics(spec: RunSpec) -> dict[str, float]:
        lr = spec.params["lr"]
        if spec.seed < 200:
            return {"val_auc": SCORES[lr]}
        return {} if spec.seed == 201 and lr in diverging else {"val_auc": 0.1 + spec.seed / 1000}

    return standing_in(monkeypatch, Fake(metrics))


def rows(content: dict[str, Any]) -> dict[float, dict[str, Any]]:
    return {row["lr"]: row for row in content["scores"]["Plain"]}


def test_only_the_leader_makes_the_short_runs_and_their_scores_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(tune=TUNE)
    trained, said = short_runs(monkeypatch), list[str]()
    content = tune("Plain", said=said)
    assert content["chosen"]["Plain"] == {"lr": 0.2}
    short = [spec for spec in trained.asked if spec.seed >= 200]
    assert [spec.seed for spec in short] == STABLE["seeds"]
    made = {
        (spec.params["lr"], spec.train.iterations, spec.train.period, spec.data.validation) for spec in short
    }
    assert made == {(0.2, 2, 1, 0.2)}
    of = rows(content)
    assert of[0.2]["val_auc"] == 0.9 and [*of[0.2]["short"].values()] == [0.3, 0.301, 0.302]
    assert [len(of[lr]["runs"]) for lr in (0.2, 0.1)] == [2, 1] and "short" not in of[0.1]
    assert content["protocol"]["stable"] == STABLE | {"reach": None}
    assert "val_auc 0.9 over 2 seeds; none of its 3 short runs failed; {'lr': 0.1} is 0.1" in said[-1]
    assert "behind on the 1 seed they share" in said[-1]
    change(tune=PAPER["tune"])
    assert "stable" not in tune("Plain")["protocol"], (
        "files from before there were short runs stay as they were"
    )


def test_one_divergence_and_the_next_trial_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=TUNE)
    short_runs(monkeypatch, 0.2, 0.01)
    content = tune("Plain")
    assert content["chosen"]["Plain"] == {"lr": 0.1}
    of = rows(content)
    assert of[0.2]["val_auc"] is None and [*of[0.2]["runs"].values()] == [0.9, 0.9]
    assert [*of[0.2]["short"].values()] == [0.3, None, 0.302]
    assert "short" not in of[0.01], "nobody asked it"
    PATH.unlink()
    short_runs(monkeypatch, *SCORES)
    with pytest.raises(UserError, match="every trial of Plain on Digits diverged"):
        tune("Plain")


@pytest.mark.parametrize(
    ("reach", "measures", "chosen"),
    [(0.3, {}, 0.2), (0.3005, {}, None), (0.302, FALLING, 0.5), (0.3015, FALLING, None)],
)
def test_a_short_run_that_learns_nothing_fails_too(
    reach: float, measures: dict[str, Any], chosen: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a metric that falls, reach is the highest."""
    short_runs(monkeypatch)
    change(tune=TUNE | {"stable": STABLE | {"reach": reach}}, measures=measures)
    if chosen is not None:
        assert tune("Plain")["chosen"]["Plain"] == {"lr": chosen}
        return
    with pytest.raises(UserError, match="every trial of Plain on Digits diverged"):
        tune("Plain")


def test_short_runs_can_be_held_against_another_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody has learned the metric of the trials yet; here one that falls."""
    standing_in(
        monkeypatch,
        Fake(
            lambda spec: {
                "val_auc": SCORES[spec.params["lr"]],
                "val_ap": 0.3 if spec.params["lr"] == 0.2 else 0.1,
            }
        ),
    )
    change(tune=TUNE | {"stable": STABLE | {"metric": "val_ap", "reach": 0.2}}, measures=FALLING)
    said = list[str]()
    content = tune("Plain", said=said)
    assert content["chosen"]["Plain"] == {"lr": 0.5} and content["protocol"]["stable"]["metric"] == "val_ap"
    assert [*rows(content)[0.5]["short"].values()] == [0.1] * 3


def test_short_runs_are_kept_too_and_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second tuning finds all in the file; the one of another protocol finds what it shares."""
    change(tune=TUNE)
    trained = short_runs(monkeypatch, 0.2)
    tune("Plain")
    before, made = PATH.read_bytes(), len(trained.asked)
    tune("Plain")
    assert len(trained.asked) == made and PATH.read_bytes() == before
    trained = short_runs(monkeypatch)
    change(tune=TUNE | {"seeds": [100, 101, 102]})  # another seed that counts, after short ones are known
    content = tune("Plain")
    assert [(spec.params["lr"], spec.seed) for spec in trained.asked] == [(0.2, 102), (0.1, 102)]
    assert rows(content)[0.2]["val_auc"] is None and content["chosen"]["Plain"] == {"lr": 0.1}
    change(tune=TUNE | {"stable": STABLE | {"seeds": [200, 202, 203]}})
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.2} and trained.seeds[2:] == [203]


def test_a_dataset_can_have_short_runs_of_its_own() -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Printed": {"stable": STABLE, "metric": "val_ap"}}})
    paper = configuration.load_paper("toy")
    assert paper.tune is not None
    of = {name: trial_specs(paper, name, "Plain", {"lr": 0.1}) for name in ("Digits", "Printed")}
    assert [(paper.tune.on(name).metric, len(runs)) for name, runs in of.items()] == [
        ("val_auc", 1),
        ("val_ap", 4),
    ]
