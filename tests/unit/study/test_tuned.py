"""Published constants or tuned ones: which count at which scale, and how far the trials reach."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import PAPER, SCALE, write_yaml

from fedbench.errors import UserError
from fedbench.report import described
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_paper, load_scale
from fedbench.study.plan import Plan
from fedbench.study.schema import Config, Constants
from fedbench.study.tuned import Tuned, edges, tuned_for

CONFIG = Path(__file__).parents[3] / "config"
SETTING = {"n_clients": 100, "rho": 10, "n_minority": 1, "alpha": 0.1, "delta": "none", "horizon": "scale"}
TRIALS = {"protocol": {"train": {"iterations": 2}}, "chosen": {"Plain": {"lr": 0.7}, "Proximal": {"mu": 0.3}}}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with tuned values, in which the toy paper gives Plain's step."""
    monkeypatch.chdir(tmp_path)
    paper = copy.deepcopy(PAPER)
    paper["methods"]["Plain"]["published"] = ["lr"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    write_yaml(Path("config/scales/small.yaml"), SCALE)
    write_yaml(Path("config/tuned/toy/Digits.yaml"), TRIALS)
    return tmp_path


@pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
def test_at_scale_paper_climb_has_the_steps_of_its_program(scale: str) -> None:
    paper, result = load_paper("climb"), load_scale(scale)
    dataset = "Digits" if scale == "demo" else "MNIST"  # nothing is tuned on the digits
    params = resolve(paper, result, dataset, SETTING, "CLIMB").params
    chosen = yaml.safe_load((CONFIG / "tuned/climb/MNIST.yaml").read_text())["chosen"]["CLIMB"]
    program = {"lr": 0.05, "dual_lr": 2.0}
    assert chosen != program
    assert {name: params[name] for name in program} == (chosen if scale == "reduced" else program)


@pytest.mark.parametrize(("constants", "lr"), [("tuned", 0.7), ("paper", None), (None, 0.7)])
def test_a_call_says_whose_constants_count(toy: Path, constants: Constants | None, lr: float | None) -> None:
    config = Config(scale="small", paper="toy", constants=constants)
    params = {cell.method: cell.runs[0].params for cell in Plan(config, "toy").cells()}
    assert params["Plain"]["lr"] == (PAPER["methods"]["Plain"]["params"]["lr"] if lr is None else lr)
    assert params["Proximal"]["mu"] == 0.3  # nothing is published for it: tuned whatever is asked for


def test_a_table_says_whose_constants_it_has_and_how_long_the_trials_were(toy: Path) -> None:
    config = Config(scale="small", paper="toy", constants="paper")
    plan = Plan(config)
    said = " ".join(described.chosen(plan, plan.cells()))
    length = plan.cells()[0].runs[0].train.iterations
    assert length == 8
    assert "as published: Digits: Plain." in said
    assert "tuned on validation data, trials of 2 iterations, 4 times shorter: Digits: Proximal." in said


def test_a_choice_on_an_edge_of_what_was_tried_is_named(toy: Path) -> None:
    tried = [{"lr": lr, "mu": mu, "score": "logit"} for lr, mu in ((0.1, 0.0), (0.7, 0.3), (2.0, 0.2))]
    scores = {"Plain": tried, "Proximal": tried}
    write_yaml(Path("config/tuned/toy/Digits.yaml"), TRIALS | {"scores": scores})
    plan = Plan(Config(scale="small", paper="toy"))
    said = described.chosen(plan, plan.cells())
    # Plain's step lies inside
    assert "Tuned values at the boundary of the search grid: Digits: Proximal mu." in said
    assert edges({"lr": 0.1, "mu": 0.0, "score": "logit"}, tried) == ["lr"], "nothing lies below 0"
    assert edges({"lr": 0.1}, tried[:1]) == [], "what was not varied has no edge"
    starts = [{"alpha_start": 0.0}, {"alpha_start": -1.0}]
    assert edges({"alpha_start": -1.0}, starts) == [], "the dual variable starts from -1 to 0"
    shares = [{"train.positives": share} for share in (None, 0.2, 0.5)]
    assert edges(shares[1], shares) == [], "batches as they fall have fewer"
    assert edges(shares[2], shares) == ["train.positives"]


def test_what_was_tried_with_another_word_brackets_nothing() -> None:
    """A step of 10 for sigmoids says nothing of the step for logits, and what was not varied for them is open."""
    sigmoids = [
        {"score": "sigmoid", "lr": lr, "rho": rho} for lr, rho in ((1.0, 0.1), (3.0, 0.01), (10.0, 0.3))
    ]
    logits = [{"score": "logit", "lr": lr, "rho": 0.1} for lr in (0.1, 0.3, 1.0)]
    tried: list[dict[str, Any]] = [*sigmoids, *logits]
    assert edges(logits[2], tried) == ["lr", "rho"]
    assert edges(logits[1], tried) == ["rho"]
    assert edges(sigmoids[1], tried) == ["rho"]
    assert Tuned(Path(), {"lr": 1.0}, {"score": "logit"}, tried).edges == ["lr"], "the word may be published"
    assert edges({"warm": True}, [{"warm": True}, {"warm": False}]) == [], "nothing lies beyond yes"


def test_a_share_has_a_bound_at_1_and_a_step_has_not() -> None:
    tried: list[dict[str, Any]] = [
        {"lr": lr, "beta": beta} for lr, beta in ((0.1, 0.1), (0.3, 0.5), (1.0, 1.0))
    ]
    assert edges(tried[-1], tried) == ["lr"]
    assert edges(tried[0], tried) == ["lr", "beta"], "0.05 would be another share"


def test_trials_of_nearly_the_length_need_no_warning(toy: Path) -> None:
    write_yaml(Path("config/tuned/toy/Digits.yaml"), TRIALS | {"protocol": {"train": {"iterations": 3}}})
    cell = Plan(Config(scale="small", paper="toy"), "toy").cells()[0]
    tuned = tuned_for(load_paper("toy"), cell.dataset, cell.setting, cell.method, load_scale("small"))
    assert tuned.trials(cell.runs[0]) == "trials of 3 iterations"


def test_a_scale_can_have_choices_of_its_own(toy: Path) -> None:
    """They come before those of all scales, method by method, at this scale alone, in a paper that extends it too."""
    write_yaml(Path("config/tuned/toy/small/Digits.yaml"), {"chosen": {"Plain": {"lr": 0.02}}})
    write_yaml(Path("config/scales/other.yaml"), SCALE)
    write_yaml(Path("config/papers/mine.yaml"), {"extends": "toy", "title": "Mine"})
    cell = Plan(Config(scale="small", paper="toy"), "toy").cells()[0]

    def params(key: str, scale: str, method: str) -> dict[str, Any]:
        return resolve(load_paper(key), load_scale(scale), cell.dataset, cell.setting, method).params

    for key in ("toy", "mine"):
        assert [params(key, scale, "Plain")["lr"] for scale in ("small", "other")] == [0.02, 0.7]
        assert [params(key, scale, "Proximal")["mu"] for scale in ("small", "other")] == [0.3, 0.3]
    tuned = tuned_for(load_paper("toy"), cell.dataset, cell.setting, "Plain", load_scale("small"))
    assert tuned.path == Path("config/tuned/toy/small/Digits.yaml")


def test_a_published_constant_needs_its_value(toy: Path) -> None:
    paper = copy.deepcopy(PAPER)
    paper["methods"]["Plain"]["published"] = ["lr", "momentun"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    with pytest.raises(UserError, match="published: 'momentun' is none of params"):
        load_paper("toy")
