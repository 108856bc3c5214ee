"""Weights files that runs start from, and plans with starts."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from start_specs import child, config, curve, model, parent

from fedbench import net
from fedbench.engine.weights import named, start_from
from fedbench.errors import UserError
from fedbench.spec import NetworkSpec, StartSpec, TaskSpec
from fedbench.store.runs import Store
from fedbench.study import cells
from fedbench.study.cells import Cell, cells_before, runs_before
from fedbench.study.configuration import load_paper, load_scale
from fedbench.study.plan import Plan
from fedbench.train import initial_weights, preflight, run_cells
from fedbench.train.training import train_run

pytestmark = pytest.mark.usefixtures("project")


class TestFiles:
    @staticmethod
    def start(path: Path, content: Any) -> dict[str, Any]:
        torch.save(content, path)
        return {"weights": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

    def test_a_file_as_pytorch_writes_it(self, tmp_path: Path) -> None:
        store = Store()
        train_run(parent(), config(), store)
        start = self.start(tmp_path / "mine.pt", model(store, parent().key))
        from_file, from_run = child(start), child()
        train_run(from_file, config(), store), train_run(from_run, config(), store)
        assert curve(store, from_file.key) == curve(store, from_run.key)

    def test_what_is_wrong_with_a_file_is_said(self, tmp_path: Path) -> None:
        train_run(parent(), config(), Store())
        good = model(Store(), parent().key)
        first, *_, last = good
        cases: list[tuple[Any, str]] = [
            ([1, 2], "does not hold a dict of tensors by name"),
            ({"a": 1}, "does not hold a dict of tensors by name"),
            ({name: value for name, value in good.items() if name != first}, f"they lack {first}"),
            (good | {"more": good[first]}, "more is unknown"),
            (good | {last: torch.zeros(7)}, rf"{last} is \[7\] there and \[1\] here \(drop_head: true"),
        ]
        for content, says in cases:
            with pytest.raises(UserError, match=says):
                train_run(child(self.start(tmp_path / "a.pt", content)), config(), Store())

    def test_another_file_or_none_is_said(self, tmp_path: Path) -> None:
        start = self.start(tmp_path / "a.pt", {})
        (tmp_path / "a.pt").write_bytes(b"noise")
        with pytest.raises(UserError, match=r"a\.pt is not the file meant: its SHA-256 is [0-9a-f]{64}"):
            train_run(child(start), config(), Store())
        noise = {"weights": str(tmp_path / "a.pt"), "sha256": hashlib.sha256(b"noise").hexdigest()}
        with pytest.raises(UserError, match="does not hold a dict of tensors"):
            train_run(child(noise), config(), Store())
        with pytest.raises(UserError, match=r"cannot read start\.weights .*No such file"):
            train_run(child(start | {"weights": str(tmp_path / "b.pt")}), config(), Store())
        with pytest.raises(
            UserError, match=r"start\.weights, the path of the file to start from, is not given"
        ):
            train_run(child({"sha256": "0" * 64}), config(), Store())

    def test_it_is_checked_before_anything_is_trained(self, tmp_path: Path) -> None:
        """Whatever cell needs it: not when its turn comes."""
        sound = Plan(config(), "toy").cells("table1")
        network = net.build_network("mlp", (1, 8, 8), 1, 0, sound[0].runs[0].network.options)
        good = named(network, network.initial(), None)
        first = next(iter(good))
        start = self.start(tmp_path / "a.pt", good)
        cases: list[tuple[dict[str, Any], str]] = [
            (start | {"sha256": "0" * 64}, "is not the file meant"),
            (start | {"weights": str(tmp_path / "none.pt")}, r"cannot read start\.weights"),
            (self.start(tmp_path / "b.pt", good | {first: torch.zeros(2, 3)}), rf"{first} is \[2, 3\] there"),
            (start, ""),
        ]
        for piece, says in cases:
            last = sound[-1].model_copy(update={"runs": [child(piece)]})
            if not says:
                preflight.check([*sound, last])
                return
            with pytest.raises(UserError, match=f"start of methods.* on datasets.*{says}"):
                run_cells.train_all(Plan(config()), [*sound, last], Store())
            assert not Path("results").exists()

    def test_what_was_trained_on_imagenet_is_no_start_for_imagenet(self, tmp_path: Path) -> None:
        options = {"hidden": [2]}
        network = net.build_network("mlp", (3, 64, 64), 1000, 0, options)
        start = self.start(tmp_path / "a.pt", named(network, network.initial(), None)) | {"drop_head": True}
        run = child(start)
        run = run.model_copy(update={"network": NetworkSpec(name="mlp", options=options)})
        for dataset, refused in (("imagenet", True), ("stl10", False)):
            data = run.data.model_copy(update={"dataset": dataset})
            shape = (3, 64, 64)
            if not refused:
                initial_weights.check_start(run.model_copy(update={"data": data}), shape)
                continue
            with pytest.raises(UserError, match="1000 outputs, as networks trained on ImageNet have"):
                initial_weights.check_start(run.model_copy(update={"data": data}), shape)

    def test_a_head_is_checked_where_the_outputs_are_known(self, tmp_path: Path) -> None:
        """A task may have a network of as many outputs as it likes."""
        run = child()
        network = net.build_network("mlp", (1, 8, 8), 5, 0, run.network.options)
        start = StartSpec(**self.start(tmp_path / "a.pt", named(network, network.initial(), None)))
        initial_weights.check_start(
            run.model_copy(update={"start": start, "task": TaskSpec(name="findings")}), (1, 8, 8)
        )
        with pytest.raises(UserError, match=r"is \[5, .*drop_head: true"):
            initial_weights.check_start(run.model_copy(update={"start": start}), (1, 8, 8))


@pytest.mark.parametrize("dots", ["", "."])
def test_a_file_of_torchvisions_densenet_fits_grey_pictures_too(tmp_path: Path, dots: str) -> None:
    """Of 1000 outputs, with the names of today and those of the file that torchvision offers."""
    from torchvision.models import densenet121

    torch.manual_seed(5)
    original = densenet121(weights=None)
    state = original.state_dict()
    path = tmp_path / "densenet121.pt"
    numbered = re.compile(r"(denselayer\d+\.(?:norm|conv))(\d)")
    torch.save({numbered.sub(rf"\1{dots}\2", name): value for name, value in state.items()}, path)
    options = {"size": 32}
    run = child(
        {"weights": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "drop_head": True}
    )
    result = initial_weights.weights(run.start, Store(), lambda parent: pytest.fail("trained"))  # type: ignore[arg-type]
    mine = net.build_network("densenet121", (1, 28, 28), 1, 0, options)
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
    from fedbench.models.resnet20 import build

    assert weights.keys() == {
        name
        for name in build((1, 8, 8), 1, blocks=1).state_dict()
        if not name.endswith("num_batches_tracked")
    }


class TestPlans:
    @staticmethod
    def paper() -> Any:
        """A paper with a method that starts from another one's model, at half the period."""
        result = load_paper("toy")
        plain, later = result.methods["Plain"], result.methods["Proximal"]
        methods = {
            "Plain": plain.model_copy(update={"train": {**plain.train, "keep_model": True}}),
            "Later": later.model_validate(later.model_dump(exclude_unset=True) | {
                "start": {"cell": {"method": "Plain", "setting": {"p": 2}}, "drop_head": True}
            }),
        }  # fmt: skip
        return result.model_copy(update={"methods": methods})

    def cell(self, method: str, p: int) -> Cell:
        setting: Any = {"p": p, "imratio": 0.2}
        run = cells.resolve(self.paper(), load_scale("demo"), "Digits", setting, method)
        runs = [run.seeded(seed) for seed in (0, 1)]
        return Cell(paper="toy", scale="demo", dataset="Digits", setting=setting, method=method, runs=runs)

    def test_a_cell_is_named_where_another_starts_from_it(self) -> None:
        later, plain = self.cell("Later", 4), self.cell("Plain", 2)
        for seed, run in enumerate(later.runs):
            assert run.start and run.start.run == plain.runs[seed]
            assert run.start.drop_head and run.seed == seed
        assert [run.key for run in runs_before(later)] == [run.key for run in plain.runs]
        kept = later.runs[0].train.model_copy(update={"keep_model": True})
        second = later.runs[0].model_copy(update={"train": kept})
        third = second.model_copy(update={"start": StartSpec(run=second)})
        assert runs_before(later.model_copy(update={"runs": [third]})) == [plain.runs[0], second], "in order"
        everything = [self.cell("Plain", 4), plain, later]
        assert cells_before(later, everything) == [plain] and cells_before(plain, everything) == []
        fresh = [run.model_copy(update={"start": None}) for run in later.runs]
        assert later.key != later.model_copy(update={"runs": fresh}).key

    def test_circles_and_slips_are_named(self) -> None:
        paper = self.paper()
        setting: Any = {"p": 4, "imratio": 0.2}

        def resolved(cell: dict[str, Any], method: str = "Later") -> None:
            later = paper.methods[method].model_validate(
                paper.methods[method].model_dump(exclude_unset=True) | {"start": {"cell": cell}}
            )
            changed = paper.model_copy(update={"methods": {**paper.methods, method: later}})
            cells.resolve(changed, load_scale("demo"), "Digits", setting, "Later")

        with pytest.raises(UserError, match=r"start\.cell is the cell itself"):
            resolved({"method": "Later"})
        with pytest.raises(UserError, match="cells start from each other"):
            resolved({"method": "Later"}, "Plain")
        with pytest.raises(UserError, match=r"start\.cell: .*methode: unknown key\. Did you mean 'method'"):
            resolved({"methode": "Plain"})
        with pytest.raises(UserError, match="unknown method"):
            resolved({"method": "Plan"})
