"""Choosing hyper-parameters: equal trials, validation score only, read back by the cells."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.jobs import choices, tune
from fedbench.jobs.trials import trial_specs, trials_of
from fedbench.jobs.tune import tune_dataset
from fedbench.plan import cells, configuration
from fedbench.plan.schema import Config
from fedbench.specs import RunSpec
from fedbench.store.provenance import commit
from fedbench.store.record import Record
from fedbench.store.runs import Store

pytestmark = pytest.mark.usefixtures("project")


def change(**parts: Any) -> None:
    """Rewrite the toy paper with other parts."""
    write_yaml(Path("config/papers/toy.yaml"), copy.deepcopy(PAPER) | parts)


def quiet(line: str) -> None:
    pass


def fake(scores: dict[Any, float | None]) -> Any:
    """Stand in for training: the validation score of a trial by its learning rate; None diverges."""

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        value = scores[spec.params["lr"]]
        status = "finished" if value is not None else "diverged"
        metrics = {"val_auc": value, "test_auc": 1 - (value or 0)} if value is not None else {}
        return Record(spec.key, {}, status, "", metrics, {}, {})

    return train


def fake_seeds(scores: dict[Any, tuple[float | None, ...]]) -> Any:
    """Stand in for training: validation scores by the learning rate and, from 100 on, the seed."""

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        score = scores[spec.params["lr"]][spec.seed - 100]
        record: Record = fake({spec.params["lr"]: score})(spec, config, store)
        return record

    return train


def chosen(method: str) -> dict[str, Any]:
    content = yaml.safe_load(Path("config/tuned/toy/Digits.yaml").read_text())
    found: dict[str, Any] = content["chosen"][method]
    return found


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
    methods["Plain"]["only"] = {"p": [4, 8]}
    change(methods=methods)
    paper = configuration.load_paper("toy")
    assert trial_specs(paper, "Digits", "Plain", {})[0].train.period == 4
    assert trial_specs(paper, "Digits", "Proximal", {})[0].train.period == 2


def test_everything_can_be_tuned_apart_at_each_value_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Proximal"]["only"] = {"p": [2]}
    tables = copy.deepcopy(PAPER["tables"])
    tables["table1"]["settings"]["p"] = [2, 4, 8]
    own = PAPER["tune"] | {"setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}
    change(methods=methods, tune=own, tables=tables)
    asked = []

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        asked.append(spec.train.period)
        best = 0.01 if spec.train.period == 2 else 0.2
        score = float(spec.params["lr"] == best)
        return Record(spec.key, {}, "finished", "", {"val_auc": score}, {}, {})

    monkeypatch.setattr(tune, "train_run", train)
    config = configuration.load_config()
    paths = tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], quiet)
    assert [path.name for path in paths] == ["Digits_p2.yaml", "Digits_p4.yaml"]
    assert asked.count(2) == 8 and asked.count(4) == 4  # the second method has no cell at 4
    said = [yaml.safe_load(path.read_text()) for path in paths]
    assert [content["protocol"]["setting"]["p"] for content in said] == [2, 4]
    assert ["Proximal" in content["chosen"] for content in said] == [True, False]
    found = {
        c.setting["p"]: c.runs[0].params["lr"] for c in cells.cells_of(config, "toy") if c.method == "Plain"
    }
    assert found == {2: 0.01, 4: 0.2, 8: 0.1}  # at 8 nothing was tuned: the paper's value


def test_every_method_gets_the_same_number_of_trials() -> None:
    methods = copy.deepcopy(PAPER["methods"])
    methods["Plain"]["grid"]["lr"] = [0.1]
    change(methods=methods)
    with pytest.raises(UserError, match="grid of Plain has 1 combinations, but every method gets 4"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    for key in configuration.paper_keys(Path(__file__).parents[3] / "config"):
        real = configuration.load_paper(key, Path(__file__).parents[3] / "config")
        for name, method in real.methods.items():
            if method.grid:
                assert len(trials_of(real, method, name)) == real.tune.trials  # type: ignore[union-attr]


def test_a_method_without_a_grid_is_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = copy.deepcopy(PAPER["methods"])
    del methods["Proximal"]["grid"]
    change(methods=methods)
    monkeypatch.setattr(tune, "train_run", fake({0.01: 0.1, 0.1: 0.9, 0.2: 0.5, 0.3: 0.4, 0.5: 0.3}))
    said: list[str] = []
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", None, said.append)
    assert [*yaml.safe_load(path.read_text())["chosen"]] == ["Plain", "Plain_too"]
    assert said[0] == "not tuned, as config/papers/toy.yaml gives no grid: Proximal"
    with pytest.raises(UserError, match=r"toy\.yaml: methods\.Proximal has no grid"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain", "Proximal"], quiet)


def test_tuned_are_the_methods_with_a_grid_that_a_dataset_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", fake(dict.fromkeys((0.01, 0.05, 0.1, 0.2, 0.3, 0.5), 0.5)))
    methods, tables = copy.deepcopy(PAPER["methods"]), copy.deepcopy(PAPER["tables"])
    methods["Fixed"] = {"algorithm": "fedavg", "params": {"lr": 0.1}}
    methods["Elsewhere"] = copy.deepcopy(methods["Plain"])
    change(methods=methods)
    tune_dataset(configuration.load_config(), "toy", "Digits", None, quiet)
    found = yaml.safe_load(Path("config/tuned/toy/Digits.yaml").read_text())["chosen"]
    shown = {name for spec in tables.values() for name in spec["methods"]}
    assert found.keys() == shown and not {"Fixed", "Elsewhere"} & shown


def test_trials_hold_data_out_and_have_a_seed_of_their_own() -> None:
    paper = configuration.load_paper("toy")
    (spec,) = trial_specs(paper, "Digits", "Proximal", {"lr": 0.05, "mu": 1.0})
    assert spec.data.validation == 0.2 and spec.seed == 100
    assert spec.train.iterations == 4 and spec.train.epochs is None and spec.train.period == 2
    assert spec.params == {"lr": 0.05, "mu": 1.0} and spec.data.imbalance.imratio == 0.2
    final = cells.cells_of(configuration.load_config(), "toy")[0].runs[0]
    assert final.data.validation == 0 and final.seed != 100


def test_trials_on_a_dataset_can_be_longer_and_its_file_says_how_long_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(tune=PAPER["tune"] | {"per_dataset": {"Digits": {"train": {"iterations": 12}}}})
    paper = configuration.load_paper("toy")
    params = {"lr": 0.05, "mu": 1.0}
    assert trial_specs(paper, "Digits", "Proximal", params)[0].train.iterations == 12
    assert trial_specs(paper, "Printed", "Proximal", params)[0].train.iterations == 4
    monkeypatch.setattr(tune, "train_run", fake({0.05: 0.7, 0.1: 0.9}))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    protocol = yaml.safe_load(path.read_text())["protocol"]
    assert protocol["train"]["iterations"] == 12 and "per_dataset" not in protocol

    change(tune=PAPER["tune"] | {"per_dataset": {"Digit": {"train": {"iterations": 12}}}})
    with pytest.raises(UserError, match=r"papers/toy\.yaml: tune: unknown dataset 'Digit'.*'Digits'"):
        configuration.load_paper("toy")


def test_a_trial_is_judged_by_the_mean_over_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101], "per_dataset": {"Printed": {"seeds": [7]}}})
    # 0.01 is best with one of the seeds, 0.5 would be but for a divergence, 0.2 never leads
    scores = {0.01: (0.99, 0.41), 0.1: (0.8, 0.9), 0.2: (0.7,), 0.5: (1.0, None)}
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
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
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
    (path,) = tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.2}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]
    assert [row["val_auc"] for row in rows] == [0.6, 0.75, 0.78, 0.675]

    path.unlink()
    monkeypatch.setattr(tune, "train_run", fake_seeds({**scores, 0.2: (0.79, None), 0.1: (0.8, 0.7, 0.6)}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}, "a trial that diverges with a later seed is out"


def test_ties_go_on_together_and_an_easier_seed_is_no_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"seeds": [100, 101, 102]})
    # three tie on the first seed; the second is easy for all of them, so that its first taker must not win by it
    scores = {0.01: (0.8, 0.9, 0.9), 0.1: (0.8, 0.95, 0.9), 0.2: (0.8, 0.9), 0.5: (0.7,)}
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
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
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    # 0.01 leads, collapses; 0.2 runs and leads; 0.1 is behind 0.2 on the seed both have, and in its mean
    assert chosen("Plain") == {"lr": 0.2}


def test_scores_in_the_file_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration.load_config()
    scores = {0.01: (0.6,), 0.1: (0.8, 0.75), 0.2: (None,), 0.5: (0.9, 0.4)}
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
    (path,) = tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert "  - {lr: 0.1, val_auc: 0.8, runs: {" in path.read_text(), "a line for each trial"
    asked = list[int]()

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        asked.append(spec.seed)
        record: Record = fake_seeds(scores)(spec, config, store)
        return record

    monkeypatch.setattr(tune, "train_run", train)
    change(tune=PAPER["tune"] | {"seeds": [100, 101]})
    tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert asked == [101, 101] and chosen("Plain") == {"lr": 0.1}
    rows = yaml.safe_load(path.read_text())["scores"]["Plain"]
    assert [list(row["runs"].values()) for row in rows] == [list(made) for made in scores.values()]

    change(
        tune=PAPER["tune"] | {"seeds": [100, 101], "validation": 0.3}
    )  # other runs: their scores count for none
    tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert asked[2:] == [100, 100, 100, 100, 101, 101]


def test_trials_ignore_earlier_choices() -> None:
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": {"Proximal": {"lr": 9.0, "mu": 9.0}}})
    (spec,) = trial_specs(configuration.load_paper("toy"), "Digits", "Proximal", {"lr": 0.05})
    assert spec.params == {"lr": 0.05, "mu": 0.1}


def test_the_best_validation_score_wins_and_ties_go_to_the_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1}


def test_of_a_metric_that_falls_the_lowest_score_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    change(tune=PAPER["tune"], measures={"val_auc": {"label": "loss", "better": "lower"}})
    scores = {0.01: (0.6,), 0.1: (0.3,), 0.2: (0.5,), 0.5: (0.7,)}
    monkeypatch.setattr(tune, "train_run", fake_seeds(scores))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], told.append)
    assert chosen("Plain") == {"lr": 0.1}
    assert "{'lr': 0.2} is 0.20000 behind" in told[-1]


def test_diverged_trials_score_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", fake({0.01: 0.0, 0.1: None, 0.2: None, 0.5: None}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.01}
    Path("config/tuned/toy/Digits.yaml").unlink()
    monkeypatch.setattr(tune, "train_run", fake(dict.fromkeys((0.01, 0.1, 0.2, 0.5))))
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged.*config/papers/toy\.yaml"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


def test_a_real_tuning_is_recorded_read_back_and_costs_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config, lines = configuration.load_config(), list[str]()
    before = {cell.method: cell.runs[0].params for cell in cells.cells_of(config, "toy", "table1")}
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

    after = {cell.method: cell.runs[0].params for cell in cells.cells_of(config, "toy", "table1")}
    assert after["Plain"] == content["chosen"]["Plain"]
    assert after["Plain_too"] == content["chosen"]["Plain_too"]
    assert after["Proximal"] == before["Proximal"]  # not tuned

    from fedbench.engine.simulate import Simulation

    monkeypatch.setattr(Simulation, "run", lambda self: pytest.fail("trained again"))
    text = path.read_text()
    tune_dataset(config, "toy", "Digits", ["Plain", "Plain_too"], quiet)
    assert path.read_text() == text


def test_tuning_another_method_keeps_the_earlier_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    assert chosen("Plain") == {"lr": 0.1} and chosen("Proximal") == {"lr": 0.1, "mu": 0.0}


def test_two_tunings_at_a_time_keep_each_others_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    config, train = configuration.load_config(), fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1})

    def meanwhile(*args: Any) -> Record:
        monkeypatch.setattr(tune, "train_run", train)
        tune_dataset(config, "toy", "Digits", ["Proximal"], quiet)
        record: Record = train(*args)
        return record

    monkeypatch.setattr(tune, "train_run", meanwhile)
    tune_dataset(config, "toy", "Digits", ["Plain"], quiet)
    assert chosen("Plain") == {"lr": 0.1} and chosen("Proximal") == {"lr": 0.1, "mu": 0.0}


def test_choices_of_two_protocols_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", fake({0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.5: 0.8, 0.05: 0.1}))
    tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    paper = Path("config/papers/toy.yaml")
    content = yaml.safe_load(paper.read_text())
    content["tune"]["validation"] = 0.3
    write_yaml(paper, content)
    with pytest.raises(UserError, match=r"Digits\.yaml: Plain were tuned with another protocol"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Proximal"], quiet)
    tune_dataset(
        configuration.load_config(), "toy", "Digits", ["Plain"], quiet
    )  # nothing else is in the file


def test_a_file_of_another_form_is_named_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "train_run", lambda *args: pytest.fail("trained"))
    path = Path("config/tuned/toy/Digits.yaml")
    scores = {"Plain": [{"lr": 0.1, "val_auc": 0.9, "runs": "54c0d0f21d332731"}]}
    write_yaml(path, {"chosen": {"Plain": {"lr": 0.1}}, "scores": scores})
    before = path.read_text()
    with pytest.raises(UserError, match=r"tuned/toy/Digits\.yaml: a trial of Plain .*remove the file"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)
    assert path.read_text() == before


def test_a_metric_that_the_runs_lack_is_no_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    change(tune=PAPER["tune"] | {"metric": "val_minority_accuracy"})
    monkeypatch.setattr(tune, "train_run", fake(dict.fromkeys((0.01, 0.1, 0.2, 0.5), 0.5)))
    with pytest.raises(UserError, match=r"tune\.metric: val_minority_accuracy is not measured on Digits"):
        tune_dataset(configuration.load_config(), "toy", "Digits", ["Plain"], quiet)


def test_a_metric_that_is_undefined_on_the_validation_part_is_no_divergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undefined = Record("k", {}, "finished", "", {"val_auc": None}, {}, {})
    monkeypatch.setattr(tune, "train_run", lambda *args: undefined)
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
