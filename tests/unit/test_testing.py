"""The checks for methods and datasets of one's own find what they are there to find, and the examples to copy pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from world import CONDITIONAL, PARAMS

from fedbench import algorithms, registry, task, tasks
from fedbench.data import datasets
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.prepared import load_prepared
from fedbench.engine.execution import Execution
from fedbench.errors import UserError
from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
from fedbench.spec import TaskSpec
from fedbench.task import build_network
from fedbench.testing import check_dataset, check_method, check_task, simulation


@dataclass(frozen=True)
class Good(FederatedMethod):
    """SGD with momentum on the server's side of a round; the broken ones below derive from it."""

    lr: float
    averaged: ClassVar[tuple[str, ...]] = ("x", "u")

    def init(self, problem: Problem, w: torch.Tensor) -> State:
        return {"x": w, "u": torch.zeros_like(w)}

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        gradient, loss = problem.gradient(
            lambda w: problem.cross_entropy(w, batches[0], buffers_of(state)), state["x"]
        )
        u = 0.5 * state["u"] + gradient
        return state | {"x": state["x"] - decay * self.lr * u, "u": u, "loss": loss}


def stepping(change: Callable[[State, State], Any]) -> type[Good]:
    """A method whose step makes ``change(state, new)`` of the good one's."""

    @dataclass(frozen=True)
    class Broken(Good):
        def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
            return change(state, super().step(problem, state, batches, decay))  # type: ignore[no-any-return]

    return Broken


def in_place(state: State, new: State) -> State:
    if len(state["x"]) == 1:  # stacked, PyTorch itself would refuse
        state["x"].copy_(new["x"])
    return new


def mixing_clients(state: State, new: State) -> State:
    return new | {"u": new["u"].mean(0, keepdim=True).expand_as(new["u"])}


def random(state: State, new: State) -> State:
    return new | {"x": new["x"] + 0.01 * float(np.random.default_rng().normal())}


@dataclass(frozen=True)
class Remembers(Good):
    """Keeps a count outside of the state, which no checkpoint holds."""

    def server(
        self, problem: Problem, server: State, clients: State, participants: list[int], at: int
    ) -> State:
        seen = vars(problem)["seen"] = vars(problem).get("seen", 0) + 1
        mean = self.mean(clients)
        return server | mean | {"x": mean["x"] / (1 + 0.01 * seen)}


@dataclass(frozen=True)
class WithoutStatistics(Good):
    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        gradient, loss = problem.gradient(lambda w: problem.cross_entropy(w, batches[0], None), state["x"])
        return state | {"x": state["x"] - decay * self.lr * gradient, "loss": loss}


def forgetting(state: State, new: State) -> State:
    return new | {"lam": state.get("lam", 0 * state["x"]) + new["u"]}


Forgets = stepping(forgetting)


def keeping(
    start: Callable[[Problem, torch.Tensor], State], change: Callable[[State, State], State] = forgetting
) -> type[Good]:
    """A method whose clients keep ``lam``, from what ``start`` makes of the model."""

    @dataclass(frozen=True)
    class Keeping(stepping(change)):  # type: ignore[misc]
        own: ClassVar[tuple[str, ...]] = ("lam",)

        def init_own(self, problem: Problem, server: State) -> State:
            return start(problem, server["x"])

    return Keeping


def with_function(name: str, function: Callable[..., Any]) -> type[Good]:
    """The good method with another function of this name."""
    return dataclass(frozen=True)(type("Broken", (Good,), {name: function, "__module__": __name__}))


@dataclass(frozen=True)
class Averages(stepping(lambda state, new: new | {"mean": (state.get("mean", new["x"]) + new["x"]) / 2})):  # type: ignore[misc]
    """A method whose ``end`` reads what ``step`` added."""

    def end(self, problem: Problem, state: State) -> State:
        return state | {"x": state["mean"]}


Offer = Callable[[Any], None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Let a class or an object be what the registry finds under the name ``mine``."""
    find, names = registry.find, registry.names

    def put(thing: Any) -> None:
        def looked_up(package: Any, kind: str, name: str, a: str) -> Any:
            return thing if name == "mine" else find(package, kind, name, a)

        monkeypatch.setattr(registry, "find", looked_up)
        monkeypatch.setattr(registry, "names", lambda package: [*names(package), "mine"])

    return put


@pytest.mark.parametrize(
    "method", ["scaffold", "climb", "codasca", "pairwise", "local_scgdam", "fcsg", "fcsg_m"]
)
def test_methods_of_ours_pass(method: str) -> None:
    check_method(method, (PARAMS | CONDITIONAL)[method])
    if method == "scaffold":
        check_method(method, PARAMS[method], n_classes=5)


@pytest.mark.parametrize("method", [Good, Averages, keeping(lambda problem, x: {"lam": torch.zeros_like(x)})])
def test_methods_in_order_pass(method: type, offer: Offer) -> None:
    """What ``end`` reads of a step, and what clients keep and add to."""
    offer(method)
    check_method("mine", {"lr": 0.1})


@pytest.mark.parametrize(
    ("method", "lr", "says"),
    [
        (Good, 1e38, "diverged on easy data"),
        (stepping(in_place), 0.1, "depends on how many clients are stacked"),
        (stepping(mixing_clients), 0.1, "depends on how many clients are stacked"),
        (stepping(random), 0.1, "gives other numbers when run again"),
        (Remembers, 0.1, "gives other numbers after a stop"),
        (stepping(lambda state, new: new | {"x": state["x"], "u": state["u"]}), 0.1, "never moved the model"),
        (WithoutStatistics, 0.1, "leaves batch-norm statistics as they were"),
        (Forgets, 0.1, "what `step` adds as 'lam' is lost after the round: name it in `own`"),
        (
            keeping(lambda problem, x: {"lam": x.expand(problem.n_clients, -1)}),
            0.1,
            "'lam' of one client, without",
        ),
    ],
)
def test_what_breaks_the_contract_is_found(method: type, lr: float, says: str, offer: Offer) -> None:
    offer(method)
    with pytest.raises(AssertionError, match=says):
        check_method("mine", {"lr": lr})


def subtracting(state: State, new: State) -> State:
    return new | {"x": state["x"].sub_(new["u"])}


RETURNED: list[tuple[type[Good], str]] = [
    (stepping(lambda state, new: None), "step has to return a state, a dict of tensors, not NoneType"),
    (stepping(subtracting), r"step has to return new tensors \(`state"),
    (stepping(lambda state, new: {"x": new["x"], "u": new["u"]}),
     r"step has to return 'loss' as torch\.float32 \[3\], not NoneType"),
    # it was added to each of the clients: the curve showed their sum
    (stepping(lambda state, new: new | {"loss": new["loss"].sum()}), r"'loss' as .* \[3\], not torch\.float32 \[\]"),
    (stepping(lambda state, new: new | {"u": new["u"][:1]}), r"'u' as .* \[3, \d+\], not torch\.float32 \[1, \d+\]"),
    (stepping(lambda state, new: new | {"x": new["x"].double()}), r"'x' as torch\.float32 .*, not torch\.float64"),
    (with_function("init", lambda self, problem, w: {"x": w}), "init has to return 'u', sent to clients"),
    (with_function("init", lambda self, problem, w: None), "init has to return 'x', sent to clients"),
    (with_function("server", lambda self, *given: None), "server has to return a state, a dict of tensors, not None"),
    (with_function("server", lambda self, *given: given[1] | {"x": given[2]["x"]}),
     r"server has to return 'x' as .* \[\d+\]"),
    (with_function("report", lambda self, server: {"test_auc": 1.0}),
     "numbers of its own, not 'test_auc', which every run"),
    (keeping(lambda problem, x: {}), "init_own has to return 'lam', as own names it"),
    (keeping(lambda problem, x: {"lam": x, "v": x}), "own has to name 'v', as init_own returns it"),
    # it was spread over what the client keeps without a word
    (keeping(lambda problem, x: {"lam": 0 * x}, lambda state, new: new | {"lam": new["u"][:, :1]}),
     r"step has to return 'lam' as .* \[3, \d+\], not torch\.float32 \[3, 1\]"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "says"), RETURNED)
def test_what_its_functions_return_is_checked_when_it_trains(method: type, says: str, offer: Offer) -> None:
    offer(method)
    with pytest.raises(UserError, match=f"test_testing: .*{says}"):
        simulation("mine", {"lr": 0.1}, how=Execution(chunk=None)).run()


def test_the_check_of_a_method_says_what_a_run_says(offer: Offer) -> None:
    method, says = RETURNED[0]
    offer(method)
    with pytest.raises(UserError, match=f"test_testing: {says}"):
        check_method("mine", {"lr": 0.1})


def test_what_is_no_method_is_said(offer: Offer) -> None:
    class Undecorated(Good):
        mu: float

    @dataclass
    class Changing(FederatedMethod):
        lr: float

    for thing in (Undecorated, Changing, Good(0.1), FederatedMethod, dict):
        offer(thing)
        with pytest.raises(UserError, match="has to be a FederatedMethod with @dataclass"):
            simulation("mine", {"lr": 0.1})


BYTES = np.zeros((100, 3), np.uint8)


class Points(Dataset):
    """Two clouds; what the tests break are its class attributes."""

    labels: ClassVar[int] = 2
    size: ClassVar[float] = 1.0
    seed: ClassVar[int | None] = 0
    changed: ClassVar[dict[str, Any]] = {}

    def prepare(self, raw_dir: Path) -> Arrays:
        y = np.arange(200) % self.labels
        x = self.size * np.random.default_rng(self.seed).normal(size=(200, 3)) + y[:, None]
        return dataclasses.replace(Arrays(x[:100], y[:100], x[100:], y[100:]), **self.changed)


def points(**broken: Any) -> Dataset:
    kind = type("Points", (Points,), broken)
    facts = {"classes": ("a", "b"), "shape": (3,), "licence": "", "source": ""}
    made: Dataset = kind(name="mine", title="", **facts)
    return made


def test_a_dataset_in_order_passes(offer: Offer, tmp_path: Path) -> None:
    offer(points())
    check_dataset("mine", tmp_path)
    check_dataset("digits", tmp_path)


@pytest.mark.parametrize(
    ("broken", "error", "says"),
    [
        ({"seed": None}, AssertionError, "not the same when it is prepared again"),
        ({"labels": 1}, AssertionError, "the train part has no sample of class 1"),
        ({"labels": 3}, UserError, "labels must be whole numbers from 0 to 1"),
        ({"size": 1000.0}, AssertionError, "bring them to about 1"),
        ({"prepare": lambda self, raw_dir: (1, 2)}, UserError, "prepare has to return Arrays, not tuple"),
        ({"changed": {"y_train": [0, 1] * 50}}, UserError, "y_train is a list, not a numpy array"),
        ({"changed": {"y_test": np.ones((100, 1), int)}}, UserError, r"test labels have shape \[100, 1\]"),
        ({"changed": {"x_train": BYTES}}, UserError, "x_train is uint8, x_test float64: .* make them alike"),
        ({"changed": {"held_train": np.arange(100) % 2}}, UserError, "held_train must be true or false"),
    ],
)
def test_what_is_wrong_with_a_dataset_is_found(
    broken: dict[str, Any], error: type[Exception], says: str, offer: Offer, tmp_path: Path
) -> None:
    offer(points(**broken))
    with pytest.raises(error, match=says):
        check_dataset("mine", tmp_path)


def test_what_is_no_dataset_is_said(offer: Offer) -> None:
    offer(object())
    with pytest.raises(UserError, match=r"is not a fedbench\.data\.dataset\.Dataset"):
        datasets.get("mine")
    offer(dataclasses.replace(points(), shape=3))  # type: ignore[arg-type]  # a comma is missing: (3)
    with pytest.raises(UserError, match=r"dataset 'mine': shape is 3, not a tuple"):
        datasets.get("mine")
    offer(datasets.get("digits"))
    with pytest.raises(UserError, match="dataset 'mine' calls itself 'digits'"):
        datasets.get("mine")


EXAMPLES = Path(__file__).parents[2] / "examples"
MOMENTUM, OPTIONS = {"lr": 0.1, "momentum": 0.8}, {"margin": 1.0}


@pytest.fixture(autouse=True)
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is found as if it lay in its package."""
    for package in (algorithms, tasks, datasets):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(EXAMPLES)])


def test_the_method_keeps_the_contract_and_learns() -> None:
    check_method("new_method", MOMENTUM)
    run = simulation("new_method", MOMENTUM, rounds=30).run()
    assert run.curve[0]["test_auc"] < 0.7 and run.curve[-1]["test_auc"] > 0.9


def test_the_method_without_momentum_is_fedavg() -> None:
    special = simulation("new_method", MOMENTUM | {"momentum": 0.0})
    known = simulation("fedavg", {"lr": 0.1})
    for run in (special, known):
        run.run()
    torch.testing.assert_close(special.server["x"], known.server["x"])


def test_the_task_keeps_the_contract_and_is_learned() -> None:
    check_task("new_task", OPTIONS)
    task = {"name": "new_task", "options": OPTIONS}
    run = simulation("fedavg", {"lr": 0.05}, task=task, rounds=30).run()
    assert run.curve[0]["test_accuracy"] < 0.7 and run.curve[-1]["test_accuracy"] > 0.9


def test_the_loss_of_the_task_at_a_score_of_0_is_the_margin_squared() -> None:
    net = build_network("mlp", (3,), 1, 0, {"hidden": []})
    batch = task.Batch(torch.ones(1, 4, 3), torch.tensor([[0, 1, 0, 1]]))
    made = tasks.make_task(TaskSpec(name="new_task", options={"margin": 2.0}))
    loss = made.loss(net, torch.zeros(1, net.d), batch, None)
    assert loss.tolist() == pytest.approx([4.0])


def test_the_dataset_keeps_the_contract_and_has_its_sizes(tmp_path: Path) -> None:
    check_dataset("new_dataset", tmp_path)
    data = load_prepared("new_dataset", tmp_path)
    assert data.x_train.shape == (800, 10) and data.x_test.shape == (200, 10)
    assert np.bincount(data.y_train).tolist() == [400, 400]
