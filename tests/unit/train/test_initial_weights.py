"""Runs that start from others, trained first, once, to the same bytes, or from a user's file of weights."""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from toy import rewrite

from fedbench import net
from fedbench.engine.simulate import Simulation
from fedbench.engine.weights import named, start_from
from fedbench.errors import UserError
from fedbench.models.resnet20 import build
from fedbench.spec import NetworkSpec, RunSpec, StartSpec, TaskSpec
from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.cells import Cell, cells_before, runs_before
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train import initial_weights, preflight, run_cells
from fedbench.train.training import train_run

pytestmark = pytest.mark.usefixtures("project")


def config() -> Config:
    return configuration.load_config(overrides={"checkpoint_seconds": 0})


def parent(**train: Any) -> RunSpec:
    run = Plan(config(), "toy").cells("table1")[0].runs[0]
    return run.model_copy(update={"train": run.train.model_copy(update={"keep_model": True, **train})})


def child(start: dict[str, Any] | None = None, **changes: Any) -> RunSpec:
    run = Plan(config(), "toy").cells("table1")[0].runs[0]
    start = start or {"run": parent()}
    return run.model_copy(update={"params": {"lr": 0.05}, "start": StartSpec(**start), **changes})


def curve(store: Store, key: str) -> list[str]:
    return (store.path(key) / "curve.csv").read_text().splitlines()


def model(store: Store, key: str) -> dict[str, Tensor]:
    return torch.load(store.path(key) / MODEL, weights_only=True)  # type: ignore[no-any-return]


def test_what_it_starts_from_is_trained_first_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, trained = Store(), list[str]()
    run = Simulation.run
    monkeypatch.setattr(Simulation, "run", lambda self: (trained.append(self.spec.key), run(self))[1])
    first, other = child(), child(params={"lr": 0.2})
    train_run(first, config(), store)
    train_run(other, config(), store)
    assert trained == [parent().key, first.key, other.key]
    last, start = (pd.read_csv(store.path(run.key) / "curve.csv") for run in (parent(), first))
    for name in ("test_auc", "test_ap"):
        assert start[name].iloc[0] == last[name].iloc[-1]
    assert curve(store, first.key)[2] != curve(store, other.key)[2]
    assert not (store.path(first.key) / MODEL).exists()  # kept on request only


def test_without_the_head_all_but_the_output_layer_is_taken() -> None:
    run, store = child({"run": parent(), "drop_head": True}, train=parent().train), Store()
    frozen = run.model_copy(update={"params": {"lr": 0.0}})
    train_run(frozen, config(), store)
    kept, plain = model(store, frozen.key), model(store, parent().key)
    head = list(kept)[-2:]
    same = {name for name in kept if torch.equal(kept[name], plain[name])}
    assert same == kept.keys() - set(head) and same
    fresh = frozen.model_copy(update={"start": None})
    train_run(fresh, config(), store)
    for name in head:
        assert torch.equal(kept[name], model(store, fresh.key)[name])


def test_a_run_that_diverged_is_nothing_to_start_from() -> None:
    bad = parent().model_copy(update={"params": {"lr": 1e30}})
    said = r"fedavg on digits, seed 0\), which another starts from, diverged: .*non-finite"
    with pytest.raises(UserError, match=said):
        train_run(child({"run": bad}), config(), Store())


def of_file(path: Path, content: Any) -> dict[str, Any]:
    """Save what a run is to start from."""
    torch.save(content, path)
    return {"weights": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def fresh(shape: tuple[int, ...], outputs: int, options: dict[str, Any]) -> dict[str, Tensor]:
    """The weights of a new mlp by name."""
    network = net.build_network("mlp", shape, outputs, 0, options)
    return named(network, network.initial(), None)


def test_a_file_as_pytorch_writes_it(tmp_path: Path) -> None:
    store = Store()
    train_run(parent(), config(), store)
    start = of_file(tmp_path / "mine.pt", model(store, parent().key))
    from_file, from_run = child(start), child()
    train_run(from_file, config(), store), train_run(from_run, config(), store)
    assert curve(store, from_file.key) == curve(store, from_run.key)


def test_what_is_wrong_with_a_file_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    """Whatever cell needs it: not when its turn comes."""
    sound = Plan(config(), "toy").cells("table1")
    good = fresh((1, 8, 8), 1, sound[0].runs[0].network.options)
    first, *_, last = good
    start = of_file(tmp_path / "good.pt", good)
    (tmp_path / "noise.pt").write_bytes(b"noise")
    noise = {"weights": str(tmp_path / "noise.pt"), "sha256": hashlib.sha256(b"noise").hexdigest()}
    contents: list[tuple[Any, str]] = [
        ({"a": 1}, "does not hold a dict of tensors by name"),
        ({name: value for name, value in good.items() if name != first}, f"they lack {first}"),
        (good | {"more": good[first]}, "more is unknown"),
        (good | {last: torch.zeros(7)}, rf"{last} is \[7\] there and \[1\] here \(drop_head: true"),
    ]
    cases = [(of_file(tmp_path / f"{n}.pt", content), says) for n, (content, says) in enumerate(contents)]
    cases += [
        (noise, "does not hold a dict of tensors"),
        (noise | {"sha256": "0" * 64}, r"noise\.pt is not the file meant: its SHA-256 is [0-9a-f]{64}"),
        (start | {"weights": str(tmp_path / "none.pt")}, r"cannot read start\.weights .*No such file"),
        ({"sha256": "0" * 64}, r"start\.weights, the path of the file to start from, is not given"),
    ]
    for piece, says in cases:
        asked = [*sound, sound[-1].model_copy(update={"runs": [child(piece)]})]
        with pytest.raises(UserError, match=f"start of methods.* on datasets.*{says}"):
            run_cells.train_all(Plan(config()), asked, Store())
    assert not Path("results").exists()
    preflight.check([*sound, sound[-1].model_copy(update={"runs": [child(start)]})])


def test_a_head_is_checked_where_the_outputs_are_known_and_imagenets_is_no_start_for_imagenet(
    tmp_path: Path,
) -> None:
    """A task may have a network of as many outputs as it likes."""
    start = of_file(tmp_path / "a.pt", fresh((1, 8, 8), 5, child().network.options))
    initial_weights.check_start(child(start, task=TaskSpec(name="findings")), (1, 8, 8))
    with pytest.raises(UserError, match=r"is \[5, .*drop_head: true"):
        initial_weights.check_start(child(start), (1, 8, 8))
    options, shape = {"hidden": [2]}, (3, 64, 64)
    start = of_file(tmp_path / "b.pt", fresh(shape, 1000, options)) | {"drop_head": True}
    run = child(start, network=NetworkSpec(name="mlp", options=options))
    for name in ("stl10", "imagenet"):
        run = run.model_copy(update={"data": run.data.model_copy(update={"dataset": name})})
        known = pytest.raises(UserError, match="1000 outputs, as networks trained on ImageNet have")
        with known if name == "imagenet" else contextlib.nullcontext():
            initial_weights.check_start(run, shape)


@pytest.mark.parametrize("dots", ["", "."])
def test_a_file_of_torchvisions_densenet_fits_grey_pictures_too(tmp_path: Path, dots: str) -> None:
    """Of 1000 outputs, with the names of today and those of the file that torchvision offers."""
    from torchvision.models import densenet121

    torch.manual_seed(5)
    original = densenet121(weights=None)
    state = original.state_dict()
    numbered = re.compile(r"(denselayer\d+\.(?:norm|conv))(\d)")
    content = {numbered.sub(rf"\1{dots}\2", name): value for name, value in state.items()}
    start = StartSpec(**of_file(tmp_path / "densenet121.pt", content), drop_head=True)
    result = initial_weights.weights(start, Store(), lambda run: pytest.fail("trained"))
    mine = net.build_network("densenet121", (1, 28, 28), 1, 0, {"size": 32})
    start_from(mine, result, drop_head=True)
    weights = named(mine, mine.initial(), mine.initial_buffers())
    assert {name for name in weights if not torch.equal(weights[name], state[name])} == {
        "classifier.weight", "classifier.bias",
    }  # fmt: skip
    images = torch.rand(2, 1, 32, 32)
    with torch.no_grad():
        start, buffers = mine.initial()[None], mine.initial_buffers()[None]
        given = mine.features(start, images[None], buffers, train=False)[1][0]
        expected = torch.relu(original.eval().features(images.expand(-1, 3, -1, -1))).mean((2, 3))
    torch.testing.assert_close(given, expected, rtol=1e-3, atol=1e-4)


def test_batch_norm_statistics_and_pytorchs_own_names_are_taken() -> None:
    """A state dict has a step counter too, which nobody here needs."""
    ours = net.build_network("resnet20", (1, 8, 8), 1, 0, {"blocks": 1})
    other = net.build_network("resnet20", (1, 8, 8), 1, 1, {"blocks": 1})
    x, statistics = torch.randn(ours.d), torch.rand(ours.n_buffers)
    weights = named(other, x, statistics)
    assert not torch.equal(ours.initial(), x)
    start_from(ours, weights | {"bn.num_batches_tracked": torch.tensor(3)}, drop_head=False)
    assert torch.equal(ours.initial(), x) and torch.equal(ours.initial_buffers(), statistics)
    theirs = build((1, 8, 8), 1, blocks=1).state_dict()
    assert weights.keys() == {name for name in theirs if not name.endswith("num_batches_tracked")}


def started(**cells: dict[str, Any]) -> list[Cell]:
    """The cells of a paper whose methods start from cells, and in which one's model is kept."""

    def change(methods: dict[str, Any]) -> None:
        methods["Plain"]["train"] = {"keep_model": True}
        for method, start in cells.items():
            methods[method]["start"] = start

    rewrite(methods=change)
    return Plan(config(), "toy").cells("table1")


def test_a_cell_is_named_where_another_starts_from_it() -> None:
    planned = started(Proximal={"cell": {"method": "Plain", "setting": {"p": 2}}, "drop_head": True})
    of = {(cell.method, cell.setting["p"]): cell for cell in planned}
    later, plain = of["Proximal", 4], of["Plain", 2]
    starts = [run.start for run in later.runs if run.start]
    assert [start.run for start in starts] == plain.runs and all(start.drop_head for start in starts)
    assert runs_before(later) == plain.runs
    kept = later.runs[0].train.model_copy(update={"keep_model": True})
    second = later.runs[0].model_copy(update={"train": kept})
    third = second.model_copy(update={"start": StartSpec(run=second)})
    assert runs_before(later.model_copy(update={"runs": [third]})) == [plain.runs[0], second], "in order"
    assert cells_before(later, planned) == [plain] and cells_before(plain, planned) == []
    unstarted = [run.model_copy(update={"start": None}) for run in later.runs]
    assert later.key != later.model_copy(update={"runs": unstarted}).key


@pytest.mark.parametrize(
    ("methods", "says"),
    [
        ({"Proximal": {"method": "Proximal"}}, r"start\.cell is the cell itself"),
        ({"Proximal": {"method": "Plain"}, "Plain": {"method": "Proximal"}}, "cells start from each other"),
        ({"Proximal": {"methode": "Plain"}}, r"start\.cell.*methode: unknown key\. Did you mean 'method'"),
        ({"Proximal": {"method": "Plan"}}, "unknown method"),
    ],
)
def test_circles_and_slips_are_named(methods: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        started(**{method: {"cell": cell} for method, cell in methods.items()})
