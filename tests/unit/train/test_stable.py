"""Short runs that the trial in the lead must survive."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_trials import change, chosen, quiet
from toy import PAPER

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.schema import Config
from fedbench.train import workers
from fedbench.train.tune.trials import trial_specs
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")
STABLE = {"train": {"iterations": 2}, "setting": {"p": 1}, "seeds": [200, 201, 202]}
TUNE = PAPER["tune"] | {"seeds": [100, 101], "stable": STABLE}
SCORES = {0.01: 0.7, 0.1: 0.8, 0.2: 0.9, 0.5: 0.6}


class Fake:
    """Stands in for training: a score by the learning rate; short runs end low, and some steps diverge in one."""

    def __init__(self, diverging: tuple[float, ...]) -> None:
        self.trained: list[RunSpec] = []
        self._diverging = diverging

    def __call__(self, spec: RunSpec, config: Config, store: Store) -> Record:
        self.trained.append(spec)
        lr = spec.params["lr"]
        if spec.seed == 201 and lr in self._diverging:
            return Record(spec.key, {}, "diverged", "", {}, {}, {})
        score = SCORES[lr] if spec.seed < 200 else 0.1 + spec.seed / 1000
        return Record(spec.key, {}, "finished", "", {"val_auc": score}, {}, {})


def tune(
    monkeypatch: pytest.MonkeyPatch, *diverging: float, say: Any = quiet
) -> tuple[list[RunSpec], dict[str, Any]]:
    trained = Fake(diverging)
    monkeypatch.setattr(workers, "train_run", trained)
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], say)
    return trained.trained, yaml.safe_load(path.read_text())


def test_only_the_leader_makes_the_short_runs_and_their_scores_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(tune=TUNE)
    said: list[str] = []
    trained, content = tune(monkeypatch, say=said.append)
    assert content["chosen"]["Plain"] == {"lr": 0.2}
    short = [spec for spec in trained if spec.seed >= 200]
    assert {(spec.params["lr"], spec.train.iterations, spec.train.period) for spec in short} == {(0.2, 2, 1)}
    assert [spec.seed for spec in short] == STABLE["seeds"]
    assert all(spec.data.validation == 0.2 for spec in short)
    rows = {row["lr"]: row for row in content["scores"]["Plain"]}
    assert rows[0.2]["val_auc"] == 0.9 and [*rows[0.2]["short"].values()] == [0.3, 0.301, 0.302]
    assert [len(rows[lr]["runs"]) for lr in (0.2, 0.1)] == [2, 1] and "short" not in rows[0.1]
    assert content["protocol"]["stable"] == STABLE | {"reach": None}
    assert said[-1] == (
        "Digits Plain: chosen {'lr': 0.2}, val_auc 0.9 over 2 seeds; none of its 3 short runs failed;"
        " {'lr': 0.1} is 0.10000 behind on the 1 seed they share"
    )
    assert sum(", short: val_auc" in line for line in said) == 3


def test_one_divergence_and_the_next_trial_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=TUNE)
    _, content = tune(monkeypatch, 0.2, 0.01)
    assert content["chosen"]["Plain"] == {"lr": 0.1}
    rows = {row["lr"]: row for row in content["scores"]["Plain"]}
    assert rows[0.2]["val_auc"] is None and [*rows[0.2]["runs"].values()] == [0.9, 0.9]
    assert [*rows[0.2]["short"].values()] == [0.3, None, 0.302]
    assert "short" not in rows[0.01], "nobody asked it"
    Path("config/tuned/toy/Digits.yaml").unlink()
    with pytest.raises(UserError, match="every trial of Plain on Digits diverged"):
        tune(monkeypatch, *SCORES)


def test_a_short_run_that_learns_nothing_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of the short runs are 0.3 to 0.302 here; for a metric that falls, reach is the highest."""
    change(tune=TUNE | {"stable": STABLE | {"reach": 0.3}})
    assert tune(monkeypatch)[1]["chosen"]["Plain"] == {"lr": 0.2}
    Path("config/tuned/toy/Digits.yaml").unlink()
    change(tune=TUNE | {"stable": STABLE | {"reach": 0.3005}})
    with pytest.raises(UserError, match="every trial of Plain on Digits diverged"):
        tune(monkeypatch)
    falling = {"val_auc": {"label": "loss", "better": "lower"}}
    change(tune=TUNE | {"stable": STABLE | {"reach": 0.302}}, measures=falling)
    assert tune(monkeypatch)[1]["chosen"]["Plain"] == {"lr": 0.5}
    Path("config/tuned/toy/Digits.yaml").unlink()
    change(tune=TUNE | {"stable": STABLE | {"reach": 0.3015}}, measures=falling)
    with pytest.raises(UserError, match="every trial of Plain on Digits diverged"):
        tune(monkeypatch)


def test_short_runs_can_be_held_against_another_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody has learned the metric of the trials yet; here one that falls, 0.1 and 0.3 to 0.302."""

    class Other(Fake):
        def __call__(self, spec: RunSpec, config: Config, store: Store) -> Record:
            record = super().__call__(spec, config, store)
            result = {"val_auc": 0.5} if spec.seed >= 200 else record.metrics
            loss = record.metrics.get("val_auc", 0) if spec.params["lr"] == 0.2 else 0.1
            return dataclasses.replace(record, metrics={**result, "val_ap": loss})

    other, falling = Other(()), {"val_ap": {"label": "loss", "better": "lower"}}
    monkeypatch.setattr(workers, "train_run", other)
    change(tune=TUNE | {"stable": STABLE | {"metric": "val_ap", "reach": 0.2}}, measures=falling)
    said: list[str] = []
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], said.append)
    content = yaml.safe_load(path.read_text())
    assert content["chosen"]["Plain"] == {"lr": 0.1} and content["protocol"]["stable"]["metric"] == "val_ap"
    rows = {row["lr"]: row for row in content["scores"]["Plain"]}
    assert [*rows[0.2]["short"].values()] == [0.3, 0.301, 0.302]
    assert [*rows[0.1]["short"].values()] == [0.1] * 3
    assert any("seed 200, short: val_ap 0.3, " in line for line in said)
    change(tune=TUNE | {"stable": STABLE | {"metric": "val_ap_of_nothing"}})
    with pytest.raises(UserError, match=r"tune\.stable\.metric"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


def test_short_runs_are_kept_too_and_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second tuning finds all in the file; the one of another protocol finds what it shares."""
    change(tune=TUNE)
    _, content = tune(monkeypatch, 0.2)
    path = Path("config/tuned/toy/Digits.yaml")
    before = path.read_bytes()
    trained, _ = tune(monkeypatch, 0.2)
    assert trained == [] and path.read_bytes() == before
    change(tune=TUNE | {"seeds": [100, 101, 102]})  # another seed that counts, after short ones are known
    trained, content = tune(monkeypatch)
    assert [(spec.params["lr"], spec.seed) for spec in trained] == [(0.2, 102), (0.1, 102)]
    rows = {row["lr"]: row for row in content["scores"]["Plain"]}
    assert rows[0.2]["val_auc"] is None and chosen("Plain") == {"lr": 0.1}
    change(tune=TUNE | {"stable": STABLE | {"seeds": [200, 202, 203]}})
    trained, content = tune(monkeypatch)
    assert [spec.seed for spec in trained] == [203] and chosen("Plain") == {"lr": 0.2}


def test_a_protocol_without_them_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written before there were short runs are still of the same protocol."""
    change(tune=PAPER["tune"])
    _, content = tune(monkeypatch)
    assert content["protocol"].keys() == PAPER["tune"].keys()
    assert all("short" not in row for row in content["scores"]["Plain"])


def test_a_dataset_can_have_its_own() -> None:
    of_printed = {"stable": STABLE, "metric": "val_ap"}
    change(tune=PAPER["tune"] | {"per_dataset": {"Printed": of_printed}, "each": {"imratio": [0.1]}})
    paper = configuration.load_paper("toy")
    assert paper.tune is not None
    assert [paper.tune.on(name).metric for name in ("Digits", "Printed")] == ["val_auc", "val_ap"]
    assert paper.tune.at({"p": 4}).setting == {"p": 4}, "not that of all"
    count = {name: len(trial_specs(paper, name, "Plain", {"lr": 0.1})) for name in ("Digits", "Printed")}
    assert count == {"Digits": 1, "Printed": 4}
    given = {"train.iterations": 3, "params.lr": 0.3}  # what a call sets, all of its runs have
    runs = trial_specs(paper, "Printed", "Plain", {"lr": 0.1}, given)
    assert [(run.train.iterations, run.params["lr"]) for run in runs] == [(3, 0.3)] * 4


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ({"seeds": [200, 200]}, "a seed is given twice"),
        ({"setting": {"q": 1}}, "unknown setting 'q'"),
        ({"seeds": [100, 200]}, "stable.seeds: 100 is one of `seeds`"),
        ({"seeds": [0, 200]}, "seed 0 is one of the final runs'"),
        ({"train": {"iteration": 2}}, "iteration"),
        ({}, "stable.seeds: 200 is one of `seeds`"),
        ({"setting": {"p": 1}}, "stable.setting.p: `each` gives its values"),
    ],
)
def test_slips_end_before_any_training(
    slip: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = PAPER["tune"] | {"stable": STABLE | slip}
    if not slip:
        tuning["per_dataset"] = {"Digits": {"seeds": [200]}}
    if "`each`" in said:
        tuning |= {"setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}
    change(tune=tuning)
    with pytest.raises(UserError, match=said):
        tune(monkeypatch)
