"""Runs that start from others: trained first, once, to the same bytes; and from a user's file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from start_specs import child, config, curve, model, parent

from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError
from fedbench.store import exchange
from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.train.training import train_run

pytestmark = pytest.mark.usefixtures("project")


def test_what_it_starts_from_is_trained_first_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, trained = Store(), list[str]()
    run = Simulation.run
    monkeypatch.setattr(Simulation, "run", lambda self: (trained.append(self.spec.key), run(self))[1])
    first, other = child(), child(params={"lr": 0.2})
    train_run(first, config(), store)
    train_run(other, config(), store)
    assert trained == [parent().key, first.key, other.key]
    last, start = (dict(zip(rows[0].split(","), rows[at].split(","), strict=True)) for rows, at in (
        (curve(store, parent().key), -1), (curve(store, first.key), 1),
    ))  # fmt: skip
    assert [start[name] for name in ("test_auc", "test_ap")] == [
        last[name] for name in ("test_auc", "test_ap")
    ]
    assert curve(store, first.key)[2] != curve(store, other.key)[2]
    assert not (store.path(first.key) / MODEL).exists()  # kept on request only


@pytest.mark.parametrize("stage", ["the first run", "the second run"])
def test_killed_in_either_it_gives_the_same_bytes(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    run = child(train=parent().train)
    train_run(run, config(), first)
    dies_in = parent().key if stage == "the first run" else run.key
    original, left = Simulation.train_round, [1]

    def dies(self: Simulation) -> Any:
        if self.spec.key == dies_in and self.state.round == 1 and left:
            left.pop()
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(Simulation, "train_round", dies)
    with pytest.raises(KeyboardInterrupt):
        train_run(run, config(), two)
    assert two.unfinished() == [dies_in]
    train_run(run, config(), two)
    for key in (run.key, parent().key):
        for name in ("curve.csv", MODEL):
            assert (first.path(key) / name).read_bytes() == (two.path(key) / name).read_bytes()


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
    with pytest.raises(
        UserError, match=r"fedavg on digits, seed 0\), which another starts from, diverged: .*non-finite"
    ):
        train_run(child({"run": bad}), config(), Store())


def test_a_damaged_model_is_named() -> None:
    store = Store()
    train_run(parent(), config(), store)
    path = store.path(parent().key) / MODEL
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"is damaged \({MODEL} is not what was written\)"):
        train_run(child(), config(), store)


def test_a_model_travels_with_its_run(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    train_run(parent(), config(), store)
    exchange.export_runs(store, [parent().key], tmp_path / "runs.tar.gz")
    exchange.import_runs(other, tmp_path / "runs.tar.gz")
    assert (other.path(parent().key) / MODEL).read_bytes() == (store.path(parent().key) / MODEL).read_bytes()
