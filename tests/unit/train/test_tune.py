"""Choosing hyper-parameters: grids, equal trials, validation score only, read back by the cells."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import PAPER, rewrite, write_yaml

from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.store import cell_files, code
from fedbench.store.provenance import commit
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train import training, workers
from fedbench.train.tune.trials import trial_specs, trials_of
from fedbench.train.tune.tuning import tune_dataset

pytestmark = pytest.mark.usefixtures("project")
PATH = Path("config/tuned/toy/Digits.yaml")
TUNE: dict[str, Any] = PAPER["tune"]
SCORES = {0.01: 0.7, 0.1: 0.9, 0.2: 0.9, 0.3: 0.6, 0.5: 0.8, 0.05: 0.1}


class Fake:
    """Stands in for training, and keeps what it was asked for.

    Attributes:
        metrics: gives the metrics of a run; one without any diverged. Default: the score of its step size.
        asked: the runs, in order.
    """

    def __init__(self) -> None:
        self.metrics: Callable[[RunSpec], Mapping[str, float | None]] = self.by_step(SCORES)
        self.asked = list[RunSpec]()

    def __call__(self, spec: RunSpec, config: Any, store: Any) -> Record:
        self.asked.append(spec)
        metrics = dict(self.metrics(spec))
        return Record(spec.key, {}, "finished" if metrics else "diverged", "", metrics, {}, {})

    @staticmethod
    def by_step(scores: Mapping[float, Any]) -> Callable[[RunSpec], Mapping[str, float | None]]:
        """Score by the step size and, in a tuple, by the seed from 100 on; None diverges."""

        def metrics(spec: RunSpec) -> dict[str, float | None]:
            score = scores[spec.params["lr"]]
            score = score[spec.seed - 100] if isinstance(score, tuple) else score
            return {} if score is None else {"val_auc": score, "test_auc": 1 - score}

        return metrics

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs that it was asked for."""
        return [spec.seed for spec in self.asked]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(workers, "train_run", made)
    return made


def tune(*methods: str, said: list[str] | None = None, **given: Any) -> dict[str, Any]:
    """Tune methods of the toy paper on its digits; return what its file says afterwards."""
    config = configuration.load_config(overrides=given)
    (path,) = tune_dataset(config, "toy", "Digits", methods or None, ([] if said is None else said).append)
    content: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return content


def runs(method: str, params: dict[str, Any], dataset: str = "Digits", **given: Any) -> list[RunSpec]:
    return trial_specs(configuration.load_paper("toy"), dataset, method, params, given)


def test_a_grid_reaches_any_place_of_a_run_and_wins_over_what_trials_share(fake: Fake) -> None:
    """It is all combinations, in which coupled keys move together."""
    coupled = {"lr, train.decay_at": [[0.1, [0.5]], [0.2, [0.25, 0.5]]], "train.clip_norm": [None, 1]}
    tuning = TUNE | {"train": {"epochs": None, "rounds": 4, "decay_at": []}}
    rewrite(methods=lambda methods: methods["Plain"].update(grid=coupled), tune=tuning)
    said = list[str]()
    assert tune("Plain", said=said)["chosen"]["Plain"]["train.decay_at"] == [0.5]
    assert "{'lr': 0.2, 'train.decay_at': [0.25, 0.5], 'train.clip_norm': 1}" in said[3]
    assert [(run.params["lr"], run.train.decay_at, run.train.clip_norm) for run in fake.asked] == [
        (0.1, (0.5,), None), (0.1, (0.5,), 1), (0.2, (0.25, 0.5), None), (0.2, (0.25, 0.5), 1),
    ]  # fmt: skip
    assert all(run.data.validation == 0.2 and run.train.rounds == 4 for run in fake.asked)
    assert "&" not in PATH.read_text(), "a list that trials share is written out each time"


def test_trials_hold_data_out_ignore_earlier_choices_and_take_what_the_call_sets() -> None:
    write_yaml(PATH, {"chosen": {"Proximal": {"lr": 9.0, "mu": 9.0}}})
    (spec,) = runs("Proximal", {"lr": 0.05})
    assert spec.params == {"lr": 0.05, "mu": 0.1} and spec.seed == 100
    assert spec.data.validation == 0.2 and spec.data.imbalance.imratio == 0.2
    assert spec.train.iterations == 4 and spec.train.epochs is None and spec.train.period == 2
    (spec,) = runs("Proximal", {"lr": 0.05}, **{"train.iterations": 3, "params.lr": 0.3})
    assert (spec.train.iterations, spec.params["lr"]) == (3, 0.3)
    tuning = {key: value for key, value in TUNE.items() if key != "validation"}
    rewrite(tune=tuning)
    with pytest.raises(UserError, match="nothing of Digits is held out to tune on; give `validation`"):
        runs("Plain", {})
    rewrite(tune=tuning, datasets=lambda all: all["Digits"]["data"].update(validation=0.4))
    assert runs("Plain", {})[0].data.validation == 0.4, "that of the final runs"


def test_a_method_without_a_cell_where_the_others_are_tuned_is_tuned_at_its_first() -> None:
    only = {"Plain": [4, 8], "Proximal": [8, 2, 4]}
    rewrite(methods=lambda methods: [methods[name].update(only={"p": only[name]}) for name in only])
    assert [runs(name, {})[0].train.period for name in only] == [4, 2]


def test_every_method_gets_the_same_number_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite(methods=lambda methods: methods["Plain"].update(grid={"lr": [0.1]}))
    with pytest.raises(UserError, match="grid of Plain has 1 combinations, but every method gets 4"):
        tune("Plain")
    monkeypatch.chdir(Path(__file__).parents[3])
    for paper in map(configuration.load_paper, configuration.paper_keys()):
        for name, method in paper.methods.items():
            if method.grid:
                assert paper.tune is not None and len(trials_of(paper, method, name)) == paper.tune.trials


def test_tuned_are_the_methods_with_a_grid_that_a_dataset_shows(fake: Fake) -> None:
    said = list[str]()
    methods = copy.deepcopy(PAPER["methods"]) | {"Elsewhere": PAPER["methods"]["Plain"]}
    del methods["Proximal"]["grid"]
    rewrite(methods=methods)
    assert [*tune(said=said)["chosen"]] == ["Plain", "Plain_too"]
    assert said[0] == "not tuned, as config/papers/toy.yaml gives no grid: Proximal"
    with pytest.raises(UserError, match=r"toy\.yaml: methods\.Proximal has no grid"):
        tune("Plain", "Proximal")
    del methods["Plain"]["grid"], methods["Plain_too"]["grid"]
    rewrite(methods=methods)
    with pytest.raises(UserError, match=r"toy\.yaml: no method has a grid"):
        tune()


STABLE = {"train": {"iterations": 2}, "setting": {"p": 1}, "seeds": [200, 201]}


def test_a_dataset_can_have_trials_of_its_own_and_its_file_says_so(fake: Fake) -> None:
    """Longer ones, other seeds, and fewer: the first of each grid; or short runs and another metric."""
    digits_alone = {"train": {"iterations": 12}, "validation": 0.3, "trials": 2, "seeds": [7]}
    printed_alone = {"stable": STABLE, "metric": "val_ap"}
    rewrite(tune=TUNE | {"per_dataset": {"Digits": digits_alone, "Printed": printed_alone}})
    printed, tuning = runs("Proximal", {}, "Printed"), configuration.load_paper("toy").tune
    assert (printed[0].train.iterations, printed[0].data.validation) == (4, 0.2)
    assert [run.seed for run in printed] == [100, 200, 201]
    assert tuning is not None
    assert [tuning.on(name).metric for name in PAPER["datasets"]] == ["val_ap", "val_auc"]
    content = tune("Proximal")
    assert {(run.train.iterations, run.data.validation, run.seed) for run in fake.asked} == {(12, 0.3, 7)}
    assert content["protocol"].items() >= {"trials": 2, "validation": 0.3}.items()
    assert content["protocol"]["train"]["iterations"] == 12 and "per_dataset" not in content["protocol"]
    assert [run.params for run in fake.asked] == [{"lr": 0.05, "mu": 0.0}, {"lr": 0.05, "mu": 1.0}]
    assert content["chosen"]["Proximal"]["lr"] == 0.05, "that of the third would have been better"


def test_everything_can_be_tuned_apart_at_each_value_of_a_setting(fake: Fake) -> None:
    rewrite(
        methods=lambda methods: methods["Proximal"].update(only={"p": [2]}),
        tables=lambda tables: tables["table1"]["settings"].update(p=[2, 4, 8]),
        tune=TUNE | {"setting": {"imratio": 0.2}, "each": {"p": [2, 4]}},
    )
    best = {2: 0.01, 4: 0.2}
    fake.metrics = lambda spec: {"val_auc": float(spec.params["lr"] == best[spec.train.period or 0])}
    config = configuration.load_config()
    paths = tune_dataset(config, "toy", "Digits", ["Plain", "Proximal"], print)
    assert [path.name for path in paths] == ["Digits_p2.yaml", "Digits_p4.yaml"]
    periods = [spec.train.period for spec in fake.asked]
    assert periods.count(2) == 8 and periods.count(4) == 4  # the second method has no cell at 4
    said = [yaml.safe_load(path.read_text()) for path in paths]
    assert [content["protocol"]["setting"]["p"] for content in said] == [2, 4]
    assert ["Proximal" in content["chosen"] for content in said] == [True, False]
    plain = [cell for cell in Plan(config, "toy").cells() if cell.method == "Plain"]
    result = {cell.setting["p"]: cell.runs[0].params["lr"] for cell in plain}
    assert result == {**best, 8: 0.1}  # at 8 nothing was tuned: the paper's value
    assert tune_dataset(config, "toy", "Digits", ["Proximal"], print) == paths, "nothing is asked for at 4"


def test_scores_in_the_file_are_not_measured_again(fake: Fake) -> None:
    scores = {0.01: (0.6,), 0.1: (0.8, 0.75), 0.2: (None,), 0.5: (0.9, 0.4)}
    fake.metrics, told = fake.by_step(scores), list[str]()
    tune("Plain", said=told)
    assert any("trial 3 of 4, seed 100: diverged" in line for line in told)
    rewrite(tune=TUNE | {"seeds": [100, 101]})
    content = tune("Plain", said=told)
    assert told[-1] == "Digits Plain: chosen {'lr': 0.1}, val_auc 0.775 over 2 seeds"
    assert fake.seeds == [100] * 4 + [101] * 2 and content["chosen"]["Plain"] == {"lr": 0.1}
    assert [[*row["runs"].values()] for row in content["scores"]["Plain"]] == [*map(list, scores.values())]
    rewrite(tune=TUNE | {"seeds": [100, 101], "validation": 0.3})
    tune("Plain")
    assert fake.seeds[6:] == [100] * 4 + [101] * 2, "the scores of other runs count for none"


def test_a_real_tuning_goes_on_where_it_was_is_read_back_and_costs_nothing_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def params() -> dict[str, Any]:
        cells = Plan(configuration.load_config(), "toy").cells("table1")
        return {cell.method: cell.runs[0].params for cell in cells}

    run, trained, before = Simulation.run, list[float](), params()

    def dies(self: Simulation) -> Any:
        trained.append(self.spec.params["lr"])
        if len(trained) == 3:
            raise KeyboardInterrupt
        return run(self)

    monkeypatch.setattr(Simulation, "run", dies)
    with pytest.raises(KeyboardInterrupt):
        tune("Plain")
    assert not PATH.exists(), "no cell may read a choice among some of the trials"
    content = tune("Plain", "Plain_too")
    assert trained[:5] == [0.01, 0.1, 0.2, 0.2, 0.5] and len(trained) == 9
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
    text = PATH.read_text()
    tune("Plain", "Plain_too")
    assert PATH.read_text() == text and len(trained) == 9


def test_scores_that_other_code_made_are_told_of_and_made_again_once_their_runs_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of a file that records no code, as shipped ones, stay."""

    def tuned_by(digest: str) -> tuple[str, list[str]]:
        said = list[str]()
        for module in (code, training):
            monkeypatch.setattr(module, "digest_of", lambda run: digest)
        return tune("Plain", said=said).get("code", {}).get("Plain"), [
            line for line in said if "note:" in line
        ]

    of_store, of_file = "other code made 4 runs of Plain;", f"other code made the scores of Plain in {PATH}"
    assert tuned_by("old") == tuned_by("old") == ("old", [])
    made_by, (first, second) = tuned_by("new")
    assert made_by == "old" and of_file in first and of_store in second
    PATH.unlink()
    made_by, (said,) = tuned_by("new")
    assert made_by == "old" and of_store in said, "trials stay in the store"
    for _ in cell_files.forget_other_code(Store()):
        pass
    made_by, (said,) = tuned_by("new")
    assert made_by == "new" and of_file in said and tuned_by("new") == ("new", [])

    shutil.rmtree(Store().root)
    write_yaml(
        PATH, {part: value for part, value in yaml.safe_load(PATH.read_text()).items() if part != "code"}
    )
    assert tuned_by("newer") == (None, []) and Store().keys() == []
    content = yaml.safe_load(PATH.read_text())
    content["scores"]["Plain"][0]["runs"] = {}
    write_yaml(PATH, content)
    assert tuned_by("newer")[0] is None and Store().keys(), "one new trial makes the others none of its code"


def test_two_tunings_at_a_time_keep_each_others_choices(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*args: Any) -> Record:
        monkeypatch.setattr(workers, "train_run", fake)
        tune("Proximal")
        return fake(*args)

    monkeypatch.setattr(workers, "train_run", meanwhile)
    chosen = [*tune("Plain")["chosen"].items()]
    assert chosen == [("Plain", {"lr": 0.1}), ("Proximal", {"lr": 0.1, "mu": 0.0})], "in the paper's order"


def test_choices_of_two_protocols_are_never_mixed(fake: Fake) -> None:
    tune("Plain", "Proximal")
    content = yaml.safe_load(PATH.read_text())
    content["commits"]["Plain"] = "old"
    before = yaml.dump(content)
    PATH.write_text(before)
    said = list[str]()
    tune("Plain", said=said, set={"train.iterations": 6})
    assert PATH.read_text() == before and "--set" in said[-1], "what a call sets is part of the protocol"

    fake.metrics = fake.by_step(SCORES | {0.01: 0.95, 0.05: 0.95})
    rewrite(tune=TUNE | {"validation": 0.3})
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


@pytest.mark.parametrize("short", [False, True])
def test_scores_of_another_metric_are_measured_again(short: bool, fake: Fake) -> None:
    """The metric is no part of a run's key."""
    fake.metrics = lambda spec: {"val_auc": 1 - spec.params["lr"], "val_ap": spec.params["lr"]}
    stable = {"train": {"iterations": 2}, "seeds": [200], "reach": 0.0}
    rewrite(tune=TUNE | {"stable": stable})
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.01} and fake.seeds == [100] * 4 + [200]
    other = {"stable": stable | {"metric": "val_ap"}} if short else {"stable": stable, "metric": "val_ap"}
    rewrite(tune=TUNE | other)
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.01 if short else 0.5}
    assert fake.seeds[5:] == ([200] if short else [100] * 4 + [200])


def test_short_runs_have_a_setting_of_their_own_and_are_kept_too(fake: Fake) -> None:
    """The second tuning finds all in the file; the one of another protocol finds what it shares."""
    diverging = {0.1: 201}  # of the two that lead

    def metrics(spec: RunSpec) -> dict[str, float]:
        lr = spec.params["lr"]
        return {} if spec.seed == diverging.get(lr) else {"val_auc": SCORES[lr]}

    fake.metrics, tuning = metrics, TUNE | {"stable": STABLE}
    rewrite(tune=tuning)
    content = tune("Plain")
    assert content["protocol"]["stable"] == STABLE | {"reach": None}
    assert content["chosen"]["Plain"] == {"lr": 0.2} and fake.seeds == [100] * 4 + [200, 201] * 2
    short = {(run.train.iterations, run.train.period, run.data.validation) for run in fake.asked[4:]}
    assert short == {(2, 1, 0.2)}
    before = PATH.read_bytes()
    tune("Plain")
    assert len(fake.asked) == 8 and PATH.read_bytes() == before
    rewrite(tune=tuning | {"stable": STABLE | {"seeds": [200, 202]}})
    assert tune("Plain")["chosen"]["Plain"] == {"lr": 0.1} and fake.seeds[8:] == [202] * 2
    rewrite(tune=TUNE)
    assert "stable" not in tune("Plain")["protocol"], "files from before short runs came stay as they were"
    diverging |= dict.fromkeys(SCORES, 100)
    PATH.unlink()
    with pytest.raises(UserError, match=r"every trial of Plain on Digits diverged; .*toy\.yaml"):
        tune("Plain")
    rewrite(tune=tuning | {"stable": STABLE | {"reach": 2.0}})
    with pytest.raises(UserError, match="diverged or missed the `reach` of 2; widen its grid"):
        tune("Plain")


@pytest.mark.parametrize(
    ("slip", "key"),
    [
        ({"seeds": [100, 100]}, "a seed is given twice"),
        ({"per_dataset": {"Digit": {}}}, "unknown dataset 'Digit'.*'Digits'"),
        ({"per_dataset": {"Digits": {"trials": 5}}}, r"per_dataset\.Digits\.trials: 5"),
        ({"metric": "test_auc"}, "not measured on validation data"),
        ({"metric": "val_acu"}, "Did you mean 'val_auc'"),
        ({"metric": "val_minority_accuracy"}, r"tune\.metric on Digits: val_minority_accuracy"),
        ({"setting": {"q": 2}}, "unknown setting 'q'.*Known: imratio, p"),
        ({"each": {"q": [2]}}, "unknown setting 'q'.*Known: imratio, p"),
        ({"seeds": [1]}, "seed 1 is one of the final runs'"),
        ({"stable": STABLE | {"setting": {"q": 1}}}, "unknown setting 'q'"),
        ({"stable": STABLE | {"seeds": [100, 200]}}, r"stable\.seeds: 100"),
        ({"stable": STABLE | {"seeds": [0, 200]}}, "seed 0 is one of the final runs'"),
        ({"stable": STABLE | {"train": {"iteration": 2}}}, "iteration"),
        ({"stable": STABLE | {"metric": "val_nothing"}}, r"tune\.stable\.metric"),
        ({"stable": STABLE, "per_dataset": {"Digits": {"seeds": [200]}}}, r"stable\.seeds: 200"),
        ({"stable": STABLE, "setting": {"imratio": 0.2}, "each": {"p": [2, 4]}}, r"stable\.setting\.p: `each`"),
    ],
)  # fmt: skip
def test_slips_in_the_section_end_before_any_training(slip: dict[str, Any], key: str, fake: Fake) -> None:
    rewrite(tune=TUNE | slip)
    with pytest.raises(UserError, match=f"(?s)toy.*{key}"):
        tune("Plain")
    assert fake.asked == []


def test_a_metric_that_is_undefined_on_the_validation_part_is_no_divergence(fake: Fake) -> None:
    fake.metrics = lambda spec: {"val_auc": None}
    with pytest.raises(UserError, match="val_auc is undefined"):
        tune("Plain")


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("", "chosen"),
        ("chosen: {1: {lr: 1}}", "chosen"),
        ("chosen: {}\nscores: {Plain: [0.5]}", "scores"),
        ("chosen: {}\nscores: {Plain: [{lr: 0.1, runs: 54c0d0f21d332731}]}", "scores"),
        ("chosen: {}\nscores: {Plain: [{lr: 0.1, short: [54c0d0f21d332731]}]}", "scores"),
        ("chosen: {}\nprotocol: {train: {epochs: [1]}}", "protocol"),
    ],
)
def test_a_file_of_another_form_is_named_and_kept(text: str, section: str, fake: Fake) -> None:
    PATH.parent.mkdir(parents=True)
    PATH.write_text(text)
    with pytest.raises(UserError, match=rf"tuned/toy/Digits\.yaml: `{section}` .*remove"):
        tune("Plain")
    assert PATH.read_text() == text and fake.asked == []


def test_unknown_names_and_missing_sections_are_named() -> None:
    with pytest.raises(UserError, match=r"unknown dataset of toy 'Digit'.*'Digits'"):
        tune_dataset(configuration.load_config(), "toy", "Digit", None, print)
    with pytest.raises(UserError, match=r"unknown method of toy 'plain'.*'Plain'"):
        tune("plain")
    rewrite(tune=None)
    with pytest.raises(UserError, match="no section `tune`"):
        tune()
