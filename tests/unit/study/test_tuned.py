"""Published constants or tuned ones: which count at which scale, how far the trials reach, and what is not tuned."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from toy import SCALE, call, rewrite, write_yaml

from fedbench import sealed_json
from fedbench.data.prepared import read_summary
from fedbench.errors import UserError
from fedbench.report import described
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, Constants
from fedbench.study.tuned import Tuned, edges, tuned_for, tuned_path

PLACE = "toy/Digits/p2_imratio0.2"
NOTE = "Not tuned for this dataset: the order of methods says nothing"
TRIALS = {"protocol": {"train": {"iterations": 2}}, "chosen": {"Plain": {"lr": 0.7}, "Proximal": {"mu": 0.3}}}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with tuned values, in which the toy paper gives Plain's step."""
    monkeypatch.chdir(tmp_path)
    publish("lr")
    write_yaml(Path("config/scales/small.yaml"), SCALE)
    write_yaml(Path("config/tuned/toy/Digits.yaml"), TRIALS)


def publish(*names: str) -> None:
    rewrite(methods=lambda methods: methods["Plain"].update(published=[*names]))


def small(constants: Constants | None = None) -> Plan:
    return Plan(Config(scale="small", paper="toy", constants=constants))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("constants", "lr"), [("tuned", 0.7), ("paper", 0.1), (None, 0.7)])
def test_a_call_says_whose_constants_count(constants: Constants | None, lr: float) -> None:
    plan = small(constants)
    params = {cell.method: cell.runs[0].params for cell in plan.cells()}
    assert params["Plain"]["lr"] == lr
    assert params["Proximal"]["mu"] == 0.3, "nothing is published for it: tuned whatever is asked for"
    said = " ".join(described.chosen(plan, plan.cells()))
    assert ("as published: Digits: Plain." in said) == (constants == "paper")
    assert "tuned on validation data, trials of 2 iterations, 4 times shorter: Digits: P" in said
    trials = TRIALS | {"scores": {"Plain": GRID, "Proximal": GRID}, "protocol": {"train": {"iterations": 3}}}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), trials)
    cells = small().cells()
    assert small().tuned(cells[1]).trials(cells[1].runs[0]) == "trials of 3 iterations", "nearly as long"
    called = {"protocol": {"train": {"iterations": 3}, "set": {"train.iterations": 4}}}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), trials | called)
    assert small().tuned(cells[1]).trials(cells[1].runs[0]) == "trials of 4 iterations", "as --set gave them"
    write_yaml(Path("config/tuned/toy/Digits.yaml"), trials)
    said = " ".join(described.chosen(small(), cells))
    assert "boundary of the search grid: Digits: Proximal mu." in said, "Plain's step lies inside"


GRID = [{"lr": lr, "mu": mu, "score": "logit"} for lr, mu in ((0.1, 0.0), (0.7, 0.3), (2.0, 0.2))]
STARTS = [{"alpha_start": 0.0}, {"alpha_start": -1.0}]
POSITIVES = [{"train.positives": share} for share in (None, 0.2, 0.5)]
BETAS = [{"lr": lr, "beta": beta} for lr, beta in ((0.1, 0.1), (0.3, 0.5), (1.0, 1.0))]
STEPS = ((1.0, 0.1), (3.0, 0.01), (10.0, 0.3))
SIGMOIDS: list[dict[str, Any]] = [{"score": "sigmoid", "lr": lr, "rho": rho} for lr, rho in STEPS]
LOGITS: list[dict[str, Any]] = [{"score": "logit", "lr": lr, "rho": 0.1} for lr in (0.1, 0.3, 1.0)]
WARM: list[dict[str, Any]] = [{"warm": True}, {"warm": False}]


@pytest.mark.parametrize(
    ("chosen", "tried", "expected", "why"),
    [
        (GRID[0], GRID, ["lr"], "nothing lies below 0"),
        ({"lr": 0.1}, GRID[:1], [], "what was not varied has no edge"),
        (STARTS[1], STARTS, [], "the dual variable starts from -1 to 0"),
        (POSITIVES[1], POSITIVES, [], "batches as they fall have fewer"),
        (POSITIVES[2], POSITIVES, ["train.positives"], "more would be another share"),
        (BETAS[2], BETAS, ["lr"], "a share has a bound at 1, a step has not"),
        (BETAS[0], BETAS, ["lr", "beta"], "0.05 would be another share"),
        (LOGITS[2], SIGMOIDS + LOGITS, ["lr", "rho"], "a step of 10 for sigmoids says nothing of logits"),
        (LOGITS[1], SIGMOIDS + LOGITS, ["rho"], "what was not varied for logits is open"),
        (SIGMOIDS[1], SIGMOIDS + LOGITS, ["rho"], "0.01 is the least"),
        (WARM[0], WARM, [], "nothing lies beyond yes"),
    ],
)
def test_a_choice_is_on_an_edge_where_something_lies_beyond(
    chosen: dict[str, Any], tried: list[dict[str, Any]], expected: list[str], why: str
) -> None:
    assert edges(chosen, tried) == expected, why
    words = {name: value for name, value in chosen.items() if isinstance(value, str)}
    tuned = Tuned(Path(), {name: chosen[name] for name in chosen if name not in words}, words, tried)
    assert tuned.edges == expected, "the word that brackets may be published"


@pytest.mark.usefixtures("toy")
def test_a_scale_or_each_value_of_a_setting_can_have_choices_of_its_own() -> None:
    """They come before those of all scales, method by method, at this scale alone, in a paper that extends it too."""
    write_yaml(Path("config/tuned/toy/small/Digits.yaml"), {"chosen": {"Plain": {"lr": 0.02}}})
    write_yaml(Path("config/scales/other.yaml"), SCALE)
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy", "title": "Mine"})
    at = "Digits", {"p": 4, "imratio": 0.2}
    for paper in map(load_paper, ("toy", "mine")):
        for scale, lr in (("small", 0.02), ("other", 0.7)):
            assert resolve(paper, load_scale(scale), *at, "Plain").params["lr"] == lr
            assert resolve(paper, load_scale(scale), *at, "Proximal").params["mu"] == 0.3
    tuned = tuned_for(load_paper("toy"), *at, "Plain", load_scale("small"))
    assert tuned.path == Path("config/tuned/toy/small/Digits.yaml")
    rewrite(tune=lambda tune: tune.update(each={"p": [2, 4]}))
    assert tuned_path(load_paper("toy"), *at) == Path("config/tuned/toy/Digits_p4.yaml")
    publish("lr", "momentun")
    with pytest.raises(UserError, match="published: 'momentun' is none of params"):
        load_paper("toy")


def shown(*arguments: str) -> str:
    return " ".join(call("show", *arguments).stdout.split())


def tune(*methods: str) -> None:
    chosen = {name: {"mu": 0.1} if name == "Proximal" else {"lr": 0.2} for name in methods}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), {"chosen": chosen})


@pytest.mark.usefixtures("project")
def test_they_are_named_in_the_list_before_training_and_below_the_table_with_the_cure() -> None:
    names = ("Plain", "Proximal", "Plain_too")
    untuned = [f"{PLACE}/{name}  0/2 runs, not tuned" for name in names]
    assert call("list", PLACE).stdout.splitlines() == untuned
    assert NOTE not in shown("table1", "--notes"), "of what has no number"
    tune("Plain")
    assert call("list", PLACE).stdout.splitlines()[0] == f"{PLACE}/Plain  0/2 runs"
    first, second, *_ = call("run", PLACE).stdout.splitlines()
    assert first.startswith("warning: 2 of 3 cells are not tuned for their dataset (Digits: Proximal, Pl")
    assert first.endswith("First: fedbench tune Digits --paper toy") and second.startswith("[1/3]")
    assert f"{NOTE} (Digits: Proximal, Plain_too)." in shown("table1")
    tune(*names)
    plan = Plan(load_config())
    assert plan.untuned_warning(plan.cells()) == "" and NOTE not in shown("table1", "--notes")


@pytest.mark.usefixtures("project")
def test_a_method_without_a_grid_is_named_beside_tuned_rivals_alone() -> None:
    rewrite(methods=lambda methods: methods["Plain"].update(grid={}))
    warning = call("run", PLACE).stdout.splitlines()[0]
    assert "2 of 3 cells" in warning and "(Digits: Proximal, Plain_too)" in warning, "none is tuned"
    tune("Proximal")
    assert f"{NOTE} (Digits: Plain (no grid), Plain_too)." in shown("table1")
    marks = [line.partition(", ")[2] for line in call("list", PLACE).stdout.splitlines()]
    assert marks == ["not tuned", "", "not tuned"]
    tune("Proximal", "Plain_too")
    plan = Plan(load_config())
    assert plan.untuned_warning(plan.cells()).endswith("First: give each a `grid`")


def untuned(**given: Any) -> set[str]:
    plan = Plan(load_config(overrides=given))
    return {cell.method for cell in plan.untuned(plan.cells())}


@pytest.mark.usefixtures("project")
def test_published_values_need_no_trials_where_they_count_and_fixed_ones_nowhere() -> None:
    published = {"published": ["lr"]}  # Proximal's mu is not
    rewrite(
        methods=lambda methods: [
            methods["Plain"].update(published), methods["Proximal"].update(published),
            methods["Plain_too"].update(grid={}),
        ]
    )  # fmt: skip
    assert untuned(constants="paper") == {"Proximal"}
    assert untuned(constants="tuned") == {"Plain", "Proximal"}
    step = {"sets": ["params.lr"], "default": 0.1, "label": "step size"}
    rewrite(
        settings=lambda settings: settings.update(step=step),
        datasets=lambda datasets: datasets["Digits"].update(fixed={"params": {"mu": 0.5}}),
    )
    assert untuned() == {"Plain_too"}


@pytest.mark.usefixtures("project")
def test_a_leaderboard_says_it_and_names_datasets_that_were_prepared_anew(prepared_digits: Path) -> None:
    board = {"title": "All", "kind": "leaderboard", "datasets": ["Digits"], "metrics": ["test_auc"]}
    board |= {"board": {"random": "Plain"}, "settings": {"p": [2]}}
    rewrite(tables=lambda tables: tables.update(board=board))
    shutil.copytree(prepared_digits, "data")
    config = Path("config/config.yaml")
    config.write_text(config.read_text().replace(str(prepared_digits), "data"))
    tune("Proximal")
    call("run", PLACE)
    board_shown = shown("board")
    assert f"{NOTE} (Digits: Plain, Plain_too)." in board_shown and "do not compare" not in board_shown

    summary = read_summary("digits", "data")
    sealed_json.write(Path("data/prepared/digits.json"), {**summary, "sha256": "0" * 64})
    tune("Plain", "Proximal", "Plain_too")
    board_shown = shown("board")
    assert NOTE not in board_shown and "`fedbench forget DATASET`" in board_shown
    assert "Numbers that do not compare: Digits (" in board_shown
