"""What tuning tries: grids, and the runs of a trial."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from fake_trials import PATH, change, fake, tune
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study import configuration
from fedbench.train.tune.trials import trial_specs, trials_of

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
