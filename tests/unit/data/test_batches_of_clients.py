"""Batches of positives and negatives, the cycles they are drawn by, and what is made ready ahead."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from world import CPU, images, rare

from fedbench.data import round_batches
from fedbench.data.clients import Arrays, ClientData
from fedbench.data.samplers import Cycle
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import TrainSpec


def shuffled(n: int) -> Any:
    return lambda number: stream(0, "test", number).permutation(n)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 17), size=st.integers(1, 20), steps=st.integers(1, 40))
def test_a_cycle_uses_all_members_alike_and_none_twice_in_a_batch(n: int, size: int, steps: int) -> None:
    cycle = Cycle(n, size, shuffled(n))
    uses: Counter[int] = Counter()
    for step in range(steps):
        batch = cycle.batch(step)
        assert len(batch) == size and set(batch.tolist()) <= set(range(n))
        if size <= n:
            assert len(set(batch.tolist())) == size
        uses.update(batch.tolist())
        assert max(uses.values()) - min(uses[k] for k in range(n)) <= 1
    late = Cycle(n, size, shuffled(n))
    assert np.array_equal(late.batch(steps - 1), batch) and np.array_equal(late.batch(0), cycle.batch(0))


@pytest.mark.parametrize(("n", "size", "passes"), [(3, 16, 6), (16, 16, 1), (17, 16, 16), (40, 16, 2)])
def test_a_client_that_was_away_shuffles_only_what_its_next_batch_depends_on(
    n: int, size: int, passes: int
) -> None:
    made: list[int] = []

    def counted(number: int) -> np.ndarray:
        made.append(number)
        return np.asarray(shuffled(n)(number))

    cycle = Cycle(n, size, counted)
    cycle.batch(0)
    made.clear()
    late = cycle.batch(999)
    assert len(made) <= passes
    steps = Cycle(n, size, shuffled(n))
    assert np.array_equal(late, [steps.batch(step) for step in range(1000)][-1])


def test_a_cycle_shuffles_each_pass_and_favours_nobody() -> None:
    """Where a batch spans two passes, who comes first in the second depends on the first; on average nobody gains."""
    firsts = Counter()
    for number in range(3000):
        cycle = Cycle(5, 3, lambda p, number=number: stream(number, "test", p).permutation(5))
        firsts.update(cycle.batch(1).tolist())
    assert all(abs(firsts[k] / 3000 - 3 / 5) < 0.04 for k in range(5))
    cycle = Cycle(5, 5, shuffled(5))
    assert len({tuple(cycle.batch(step)) for step in range(20)}) > 15


def data(arrays: Arrays, seed: int = 0, **train: Any) -> ClientData:
    how = {"rounds": 3, "period": 5, "batch_size": 8, "positives": 3, **train}
    return ClientData(arrays, TrainSpec(**{k: v for k, v in how.items() if v is not None}), seed, CPU)


def test_a_batch_holds_positives_then_negatives_each_cycled_by_itself() -> None:
    arrays = rare([7, 4])
    pairs = data(arrays)
    for client, number in ((0, 7), (1, 4)):
        steps = [batch for r in range(4) for batch in pairs.plan(client, r)]
        signs = [arrays.y_train[arrays.clients[client]][batch] for batch in steps]
        assert all(y.tolist() == [1, 1, 1, 0, 0, 0, 0, 0] for y in signs)
        assert all(len(set(batch.tolist())) == 8 for batch in steps)
        uses = Counter(np.concatenate(steps).tolist())
        assert {uses[k] for k in range(number)} <= {60 // number, 60 // number + 1}
        assert {uses[k] for k in range(number, 20)} <= {100 // (20 - number), 100 // (20 - number) + 1}
    again = data(arrays)
    assert np.array_equal(again.plan(1, 2), pairs.plan(1, 2))  # a resumed run begins anywhere
    assert not np.array_equal(pairs.plan(1, 2), pairs.plan(1, 2, "inner batches"))
    assert not np.array_equal(pairs.plan(1, 2), data(arrays, seed=1).plan(1, 2))


def test_shares_keep_the_mean_unbiased() -> None:
    """Over whole passes of both signs the mean of the batches' weighted means is the mean over the client."""
    arrays = rare([6, 6])
    pairs = data(arrays, batch_size=10, positives=3, period=14)  # 7 passes over 6, 7 over 14
    value = torch.arange(40.0).view(2, 20)
    means = []
    work = pairs.work([0, 1], 0, "batches")
    for step in range(14):
        batch = work.batch(step)
        index = np.stack([pairs.plan(client, 0)[step] for client in (0, 1)])
        assert batch.weight is not None
        torch.testing.assert_close(batch.weight.sum(1), torch.ones(2))
        assert torch.equal(batch.weight[0].unique(), torch.tensor([14 / 20 / 7, 6 / 20 / 3]).unique())
        means.append((batch.weight * value.gather(1, torch.from_numpy(index))).sum(1))
    torch.testing.assert_close(torch.stack(means).mean(0), value.mean(1))


def test_a_client_with_few_or_none_of_a_sign_gives_what_it_has() -> None:
    arrays = rare([7, 2, 0, 20])
    pairs = data(arrays)
    assert [pairs.shape(client) for client in range(4)] == [(3, 5), (2, 5), (0, 5), (3, 0)]
    assert [pairs.batch_size(client) for client in range(4)] == [8, 7, 5, 3]
    work, first = pairs.work([0, 1, 2, 3], 0, "batches"), pairs.first([0, 1, 2, 3], "first batches")
    assert work.samples == 5 * (8 + 7 + 5 + 3) and not work.unequal
    for batch in (*map(work.batch, range(5)), first.batch(0)):
        assert batch.weight is not None
        torch.testing.assert_close(batch.weight.sum(1), torch.ones(4))
        used = [
            (int((batch.labels[k] * (batch.weight[k] > 0)).sum()), int((batch.weight[k] > 0).sum()))
            for k in range(4)
        ]
        assert used == [(3, 8), (2, 7), (0, 5), (3, 3)]
    alone = pairs.work([1], 0, "batches").batch(2)
    together = work.batch(2)
    assert alone.weight is not None and together.weight is not None
    assert torch.equal(alone.inputs[0], together.inputs[1, :7])
    assert torch.equal(alone.weight[0], together.weight[1, :7])


def test_a_share_of_the_batch_weighs_all_samples_alike_and_repeats_few_positives() -> None:
    """LibAUC's DualSampler: int(0.3 * 8) = 2 positives and 6 negatives in every batch of who has both."""
    arrays = rare([7, 1, 0])
    pairs = data(arrays, positives=0.3, batch_size=8)
    assert [pairs.shape(client) for client in range(3)] == [(2, 6), (2, 6), (0, 6)]
    for client, uses in ((0, 7), (1, 1)):
        steps = [batch for r in range(7) for batch in pairs.plan(client, r)]
        assert all((batch[:2] < uses).all() and (batch[2:] >= uses).all() for batch in steps)
        assert set(Counter(np.concatenate(steps)[np.concatenate(steps) < uses].tolist()).values()) == {
            70 // uses
        }
    two, three = pairs.work([0, 1], 0, "batches"), pairs.work([0, 1, 2], 0, "batches")
    assert two.samples == 5 * 16 and two.batch(1).weight is None
    weight = three.batch(1).weight
    assert weight is not None
    torch.testing.assert_close(weight[0], torch.full((8,), 1 / 8))
    torch.testing.assert_close(weight[2], torch.tensor([1 / 6] * 6 + [0.0] * 2))


@pytest.mark.parametrize(("share", "positives"), [(0.2, 6), (0.01, 1), (0.29, 9), (0.5, 16), (0.98, 31)])
def test_a_share_is_rounded_down_to_one_at_least(share: float, positives: int) -> None:
    assert data(rare([7]), positives=share, batch_size=32).shape(0) == (positives, 32 - positives)


@pytest.mark.parametrize(
    ("prior", "expected"), [("client", (0.25 + 0.25 + 0) / 3), ("pooled", 0.25 * 35 / 50)]
)
def test_the_prior_of_a_share_is_that_of_the_batches(prior: str, expected: float) -> None:
    arrays = images((20, 15, 15))
    y = np.zeros_like(arrays.y_train)
    y[arrays.clients[0][:4]] = y[arrays.clients[1][:1]] = 1
    shared = data(dataclasses.replace(arrays, y_train=y), positives=0.25, prior=prior)
    assert shared.prior == pytest.approx(expected, abs=1e-12)


def test_cycles_are_open_to_others() -> None:
    pairs = data(rare([7, 4]), positives=None)
    members = np.array([3, 5, 11])
    batches = pairs.cycle(1, members, 2, range(6), "mine")
    assert Counter(np.concatenate(batches).tolist()) == {3: 4, 5: 4, 11: 4}
    assert np.array_equal(pairs.cycle(1, members, 2, [4], "mine")[0], batches[4])
    assert len(pairs.cycle(1, members, 7, [0], "many")[0]) == 7
    assert [len(batch) for batch in pairs.cycle(1, members[:0], 0, range(2), "none")] == [0, 0]


def test_bad_requests_are_named() -> None:
    with pytest.raises(UserError, match="3 classes have no positives"):
        data(images((20, 20), n_classes=3))
    with pytest.raises(UserError, match="goes with period"):
        data(rare([7]), period=None, local_epochs=1)


@pytest.mark.parametrize("ahead", [1, 700, 10**9], ids=["one by one", "some", "all"])
@pytest.mark.parametrize("augment", ["none", "pad_crop_flip"])
def test_inputs_made_ready_ahead_are_the_same(
    augment: str, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is gathered in one call, padded and short batches included, in any order of steps."""
    how = {"local_epochs": 2, "batch_size": 8, "rounds": 1, "augment": augment}
    arrays = images((20, 26, 9), side=8)
    data = ClientData(arrays, TrainSpec(**how, normalize={"mean": [0.1], "std": [0.3]}), 0, CPU)
    alone = {c: data.work([c], 0, "batches") for c in range(3)}
    monkeypatch.setitem(round_batches.AHEAD, "cpu", ahead)
    stacked = data.work([0, 1, 2], 0, "batches")
    for step in [*range(stacked.steps), 0, 2]:
        batch = stacked.batch(step)
        for c in range(3):
            if step < alone[c].steps:
                own_data = alone[c].batch(step)
                size = own_data.inputs.shape[1]
                assert torch.equal(batch.inputs[c, :size], own_data.inputs[0])
                assert torch.equal(batch.labels[c, :size], own_data.labels[0])
