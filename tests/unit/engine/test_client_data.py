"""Mini-batches of the clients: which samples, how prepared, the same wherever inputs are."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from world import CONDITIONAL, CPU, images, points, same, simulate, spec

from fedbench.data import inputs, round_batches
from fedbench.data.clients import Arrays, ClientData
from fedbench.data.inputs import Mapped, copied, place
from fedbench.data.multi_source import Rows
from fedbench.engine.execution import Outcome
from fedbench.errors import UserError
from fedbench.random import stream
from fedbench.spec import RunSpec, TaskSpec, TrainSpec

SIZES = (20, 26, 4)


def client_data(sizes: tuple[int, ...] = SIZES, seed: int = 0, **train: Any) -> ClientData:
    how = {"rounds": 3, "period": 4, "batch_size": 6, **train}
    spec = TrainSpec(**{name: value for name, value in how.items() if value is not None})
    return ClientData(images(sizes), spec, seed, CPU)


def test_a_period_walks_through_reshuffled_epochs_and_drops_incomplete_batches() -> None:
    data = client_data()
    steps = [batch for r in range(6) for batch in data.plan(0, r)]  # 24 steps, 3 an epoch
    assert all(len(batch) == 6 for batch in steps)
    epochs = [np.concatenate(steps[at : at + 3]) for at in range(0, 24, 3)]
    for epoch in epochs:
        assert len(set(epoch.tolist())) == 18 and set(epoch.tolist()) <= set(range(20))
    assert len({tuple(epoch) for epoch in epochs}) == 8
    assert len({tuple(sorted(epoch)) for epoch in epochs}) > 1  # the dropped ones are others each time


def test_rounds_can_be_asked_for_in_any_order() -> None:
    """A resumed run begins in the middle of an epoch."""
    ahead, later = client_data(), client_data()
    expected = [ahead.plan(1, r) for r in range(5)]
    for r in (4, 2, 0, 3, 1):
        assert all(np.array_equal(a, b) for a, b in zip(later.plan(1, r), expected[r], strict=True))


def test_local_epochs_visit_every_sample_each_epoch() -> None:
    data = client_data(period=None, local_epochs=2)
    plan = data.plan(1, 0)
    assert [len(batch) for batch in plan] == [6, 6, 6, 6, 2] * 2
    assert sorted(np.concatenate(plan[:5])) == sorted(np.concatenate(plan[5:])) == list(range(26))
    orders = [tuple(np.concatenate(data.plan(1, r)[at : at + 5])) for r in range(3) for at in (0, 5)]
    assert len(set(orders)) == 6  # no epoch of any round repeats another's order


def test_batches_per_epoch_divide_a_clients_data() -> None:
    data = client_data(period=None, local_epochs=1, batch_size=None, batches_per_epoch=5)
    assert [data.batch_size(k) for k in range(3)] == [4, 5, 1]  # n // 5, at least 1
    assert [len(batch) for batch in data.plan(1, 0)] == [5, 5, 5, 5, 5, 1]


def test_batches_depend_on_seed_client_and_purpose_alone() -> None:
    data, other = client_data(), client_data(seed=1)
    again, unlike = client_data((20, 26, 4)), client_data((20, 20, 4))
    assert all(np.array_equal(a, b) for a, b in zip(data.plan(0, 1), again.plan(0, 1), strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(data.plan(0, 1), unlike.plan(0, 1), strict=True))
    assert not np.array_equal(data.plan(0, 0)[0], other.plan(0, 0)[0])
    assert not np.array_equal(data.plan(0, 0)[0], data.plan(0, 0, "inner batches")[0])
    assert not np.array_equal(unlike.plan(0, 0), unlike.plan(1, 0))


def test_stacked_batches_hold_each_clients_own_samples_and_shares() -> None:
    data, arrays = client_data(period=None, local_epochs=1), images(SIZES)
    work = data.work([0, 1, 2], 0, "batches")
    assert work.steps == 5 and work.samples == sum(SIZES) and work.unequal
    active = torch.stack([work.active(step) for step in range(5)])
    assert active.sum(0).tolist() == [4, 5, 1]
    for step in range(5):
        batch = work.batch(step)
        weight = batch.weight if batch.weight is not None else torch.full(batch.labels.shape, 1 / 6)
        for client in range(3):
            plan = data.plan(client, 0)
            if step >= len(plan):
                assert not weight[client].any()
                continue
            mine = arrays.clients[client][plan[step]]
            count = len(mine)
            assert np.array_equal(batch.inputs[client, :count], arrays.x_train[mine])
            assert np.array_equal(batch.labels[client, :count], arrays.y_train[mine])
            assert torch.allclose(weight[client, :count], torch.full((count,), 1 / count))
            assert not weight[client, count:].any()
    alone = data.work([0], 0, "batches")
    assert all(alone.batch(step).weight is None for step in range(4)) and not alone.unequal
    assert alone.batch(3).labels.shape == (1, 2)


def test_first_batches_are_whole_whoever_is_stacked() -> None:
    data = client_data()
    together = data.first([0, 1, 2], "first batches").batch(0)
    for client in range(3):
        alone = data.first([client], "first batches").batch(0)
        count = alone.labels.shape[1]
        assert count == min(6, SIZES[client]) and alone.weight is None
        assert torch.equal(together.inputs[client, :count], alone.inputs[0])
        assert together.weight is not None
        assert together.weight[client].sum() == pytest.approx(1)
        assert not together.weight[client, count:].any()
    equal = client_data((20, 26)).first([0, 1], "first batches").batch(0)
    assert equal.weight is None


def test_draws_are_distinct_samples_of_the_client() -> None:
    data, arrays = client_data(), images(SIZES)
    batch = data.draw(1, 10)
    assert batch.inputs.shape == (1, 10, 1, 6, 6)
    rows = {x.tobytes() for x in batch.inputs[0].numpy()}
    assert len(rows) == 10 and rows <= {x.tobytes() for x in arrays.x_train[arrays.clients[1]]}
    assert data.draw(2, 10).labels.shape == (1, 4)


def test_auxiliary_batches_hold_one_class_each() -> None:
    data = client_data()
    batches = data.auxiliary(4)
    assert [batch.labels[0].tolist() for batch in batches] == [[0] * 4, [1] * 4]
    assert torch.equal(data.auxiliary(4)[1].inputs, batches[1].inputs)  # the server keeps the samples it drew
    assert not torch.equal(client_data(seed=1).auxiliary(4)[1].inputs, batches[1].inputs)
    arrays = images(SIZES)
    one_class = dataclasses.replace(arrays, y_train=np.zeros_like(arrays.y_train))
    empty = ClientData(one_class, TrainSpec(rounds=1, period=1, batch_size=2), 0, CPU)
    with pytest.raises(UserError, match="no client has a sample of class 1"):
        empty.auxiliary(4)


def test_bytes_become_numbers_between_zero_and_one_then_normalised() -> None:
    arrays = images(SIZES)
    pixels = np.arange(len(arrays.x_train) * 36, dtype=np.int64).reshape(-1, 1, 6, 6) % 256
    stored = dataclasses.replace(arrays, x_train=pixels.astype(np.uint8))
    plain = {"rounds": 1, "period": 1, "batch_size": 4}
    data = ClientData(stored, TrainSpec(**plain), 0, CPU)
    batch = data.work([0], 0, "batches").batch(0)
    mine = arrays.clients[0][data.plan(0, 0)[0]]
    np.testing.assert_allclose(batch.inputs[0], pixels[mine] / 255, rtol=1e-6)
    assert batch.inputs.dtype == torch.float32
    normalised = ClientData(stored, TrainSpec(**plain, normalize={"mean": [0.4], "std": [0.2]}), 0, CPU)
    result = normalised.work([0], 0, "batches").batch(0).inputs[0]
    np.testing.assert_allclose(result, (pixels[mine] / 255 - 0.4) / 0.2, rtol=1e-4, atol=1e-5)


def test_normalisation_is_per_channel() -> None:
    arrays = images(SIZES)
    colours = dataclasses.replace(arrays, x_train=np.repeat(arrays.x_train, 3, 1))
    how = {"mean": [0.0, 1.0, 2.0], "std": [1.0, 2.0, 4.0]}
    data = ClientData(colours, TrainSpec(rounds=1, period=1, batch_size=4, normalize=how), 0, CPU)
    batch = data.work([0, 1], 0, "batches").batch(0).inputs  # [K, B, C, H, W]
    base = batch[:, :, 0]
    torch.testing.assert_close(batch[:, :, 1], (base - 1) / 2)
    torch.testing.assert_close(batch[:, :, 2], (base - 2) / 4)


def test_grey_images_that_are_normalised_as_coloured_ones_have_three_channels() -> None:
    """For the network too, whatever it is."""
    how: dict[str, Any] = {"normalize": {"mean": [0.0, 1.0, 2.0], "std": [1.0, 2.0, 4.0]}}
    options = {"channels": [2], "kernel": 3, "hidden": [3]}
    simulation, _ = simulate(spec(network="cnn", options=options, rounds=1, **how), images(side=8))
    assert simulation.data.sample == (3, 8, 8) and dict(simulation.problem.net.parameters)["0.weight"][1] == 3
    batch = simulation.data.draw(0, 5).inputs[0]
    torch.testing.assert_close(batch[:, 2], (batch[:, 0] - 2) / 4)
    with pytest.raises(UserError, match=r"train\.normalize has 2 means, but a sample has 3 channels"):
        colours = dataclasses.replace(images(), x_train=np.repeat(images().x_train, 3, 1))
        simulate(spec(normalize={"mean": [0.0, 1.0], "std": [1.0, 2.0]}), colours)


def test_padding_is_black_and_not_the_mean_colour() -> None:
    arrays = images(SIZES)
    grey = dataclasses.replace(arrays, x_train=np.full(arrays.x_train.shape, 102, np.uint8))
    how = {"augment": "pad_crop_flip", "normalize": {"mean": [0.4], "std": [0.2]}}
    data = ClientData(grey, TrainSpec(rounds=1, period=1, batch_size=6, **how), 0, CPU)
    batch = data.work([0], 0, "batches").batch(0).inputs.unique()
    # (0 - 0.4) / 0.2, 102 / 255 - 0.4
    torch.testing.assert_close(batch, torch.tensor([-2.0, 0.0]), atol=1e-6, rtol=0)


def test_augmentation_is_each_clients_own_whoever_is_stacked() -> None:
    data = client_data(augment="crop_flip")
    together = data.work([0, 1], 2, "batches").batch(1).inputs
    for row, client in enumerate((0, 1)):
        assert torch.equal(together[row], data.work([client], 2, "batches").batch(1).inputs[0])
    other = data.work([0, 1], 2, "inner batches").batch(1).inputs
    assert not torch.equal(together, other)


@pytest.mark.parametrize("augment", ["none", "crop_flip"])
def test_noise_has_each_clients_mean_and_is_added_to_what_training_sees(augment: str) -> None:
    """After normalising: a loop over the clients; the first batch, drawn samples and the test part are clean."""
    how = {"augment": augment, "normalize": {"mean": [0.4], "std": [0.2]}}
    clean = client_data(**how)
    noisy = client_data(**how, noise={"std": 0.2, "shift": 0.01, "centre": 8})
    together = noisy.work([0, 1], 2, "batches").batch(1).inputs
    for row, client in enumerate((0, 1)):
        before = clean.work([client], 2, "batches").batch(1).inputs[0]
        drawn = stream(0, "noise batches", client, 2, 1).standard_normal(before.shape, dtype=np.float32)
        expected = before + torch.from_numpy(0.2 * drawn + 0.01 * (client - 8)).float()
        torch.testing.assert_close(together[row], expected, rtol=0, atol=1e-6)
    pairs = [[data.first([0], "start").batch(0), data.draw(0, 5)] for data in (clean, noisy)]
    assert all(torch.equal(kept.inputs, drawn.inputs) for kept, drawn in zip(*pairs, strict=True))


def test_prior_is_the_share_of_all_clients_samples() -> None:
    arrays = images(SIZES, validation=12)
    used = arrays.y_train[np.concatenate(arrays.clients)]
    data = ClientData(arrays, TrainSpec(rounds=1, period=1, batch_size=4), 0, CPU)
    assert data.prior == pytest.approx(used.mean()) and data.prior != pytest.approx(arrays.y_train.mean())
    several = ClientData(images(SIZES, n_classes=3), TrainSpec(rounds=1, period=1, batch_size=4), 0, CPU)
    assert math.isnan(several.prior)


def test_a_client_without_samples_is_named() -> None:
    arrays = images(SIZES)
    empty = dataclasses.replace(arrays, clients=[*arrays.clients[:2], np.array([], int)])
    with pytest.raises(UserError, match="client 2 has no training samples"):
        ClientData(empty, TrainSpec(rounds=1, period=1, batch_size=4), 0, CPU)


@pytest.mark.parametrize(
    "normalize", [None, {"mean": [0.3], "std": [0.2]}, {"mean": [0.3, 0.4, 0.5], "std": [0.2, 0.3, 0.4]}]
)
def test_inputs_are_the_same_bits_whether_they_are_kept_ready_or_not(
    monkeypatch: pytest.MonkeyPatch, normalize: dict[str, Any] | None
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (sum(SIZES), 1, 6, 6), dtype=np.uint8)
    arrays = dataclasses.replace(images(SIZES), x_train=pixels)

    def data(**more: Any) -> ClientData:
        how = {"rounds": 3, "period": 4, "batch_size": 6, "normalize": normalize, **more}
        return ClientData(arrays, TrainSpec(**how), 0, CPU)

    kept, index = data(), torch.tensor([[3, 0, 49], [7, 7, 20]])
    assert kept._ready is not None and data(augment="crop_flip")._ready is None
    monkeypatch.setattr("fedbench.data.clients.READY", 0)
    fresh = data()
    assert fresh._ready is None
    expected = fresh.prepare(fresh.inputs[index])
    for first in (kept, fresh):
        assert torch.equal(first.gather(index).inputs, expected)
    for step in range(4):
        ready, made = (first.work([0, 1], 1, "batches").batch(step).inputs for first in (kept, fresh))
        assert torch.equal(ready, made) and ready.dtype == torch.float32


pytestmark = pytest.mark.filterwarnings("error:The given NumPy array is not writable")
GREY = {"normalize": {"mean": [0.4], "std": [0.3]}}


def in_files(arrays: Arrays, folder: Path) -> Arrays:
    """The same arrays, inputs mapped from a file; those for training from two, as of joined hospitals."""
    parts = np.split(arrays.x_train, [len(arrays.x_train) // 3])
    mapped = []
    for name, part in zip("abc", [*parts, arrays.x_test], strict=True):
        np.save(folder / f"{name}.npy", part)
        mapped.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return dataclasses.replace(arrays, x_train=Rows(mapped[:2]), x_test=mapped[2])


def as_bytes(arrays: Arrays) -> Arrays:
    """Images as they are stored, of 8 bits."""
    parts = (np.clip(40 * x + 120, 0, 255).astype(np.uint8) for x in (arrays.x_train, arrays.x_test))
    return dataclasses.replace(arrays, **dict(zip(("x_train", "x_test"), parts, strict=True)))


def numbers(outcome: Outcome) -> str:
    untimed = [{k: v for k, v in row.items() if "seconds" not in k} for row in outcome.curve]
    return repr((outcome.status, outcome.metrics, untimed, outcome.clients))  # a nan is one, too


def sited() -> Arrays:
    return dataclasses.replace(images(validation=12), site_test=np.arange(60) % 3, sites=("A", "B", "C"))


def nested() -> RunSpec:
    options = {"sigma": 0.8, "copies": 3, "first_samples": 5, "penalty_weight": 0.01, "penalty_gamma": 10.0}
    plain = spec(options={"hidden": []})
    method = {"method": "fcsg", "params": CONDITIONAL["fcsg"]}
    return plain.model_copy(update={**method, "task": TaskSpec(name="invariant", options=options)})


@pytest.mark.parametrize(
    ("run", "arrays"),
    [
        (spec("local_scgdam", **GREY, augment="pad_crop_flip"), as_bytes(images(validation=12, side=8))),
        (spec("local_sgdam", **GREY, positives=2), as_bytes(images())),
        (spec("climb", local_epochs=2, period=None), sited()),
        (spec("moon", network="mlp", local_epochs=1, period=None, **GREY), as_bytes(images())),
        (nested(), points(dtype=np.float32)),
    ],
    ids=["augmented", "positives", "sites", "moon", "nested"],
)
@pytest.mark.parametrize("ahead", [1, 2**17], ids=["step by step", "several steps"])
def test_a_run_has_the_same_numbers_wherever_its_inputs_are(
    run: RunSpec, arrays: Arrays, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(round_batches.AHEAD, "cpu", ahead)
    copy, expected = simulate(run, arrays, None, inputs="device")
    mapped, trained = simulate(run, in_files(arrays, tmp_path), None, inputs="host")
    assert (copy.data.where, mapped.data.where) == ("device", "host")
    assert isinstance(mapped.data.inputs, Mapped) and isinstance(copy.data.inputs, torch.Tensor)
    assert numbers(trained) == numbers(expected)
    assert same(mapped.server, copy.server) and len(expected.curve) > 1


def test_batches_are_read_once_and_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(round_batches.AHEAD, "cpu", 1)
    run, arrays = spec(local_epochs=2, period=None), images((20, 26, 9))
    full = ClientData(arrays, run.train, 0, CPU, "device").work([0, 1, 2], 0, "batches")
    data = ClientData(in_files(arrays, tmp_path), run.train, 0, CPU, "host")
    read: list[np.ndarray] = []
    gathered = Mapped._gathered
    monkeypatch.setattr(Mapped, "_gathered", lambda self, index: read.append(index) or gathered(self, index))
    part = data.work([0, 1, 2], 0, "batches")
    for step in range(part.steps):
        assert torch.equal(part.batch(step).inputs, full.batch(step).inputs)
    assert len(read) == part.steps > 3
    for step in (2, 0, 1):
        assert torch.equal(part.batch(step).inputs, full.batch(step).inputs)


def test_mapped_inputs_answer_as_a_tensor_does() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2, 3)).astype(np.float32)
    used = np.array([4, 2, 2, 29, 0, 11, 7])
    mapped, tensor = Mapped(rows, used, CPU), torch.from_numpy(rows[used])
    assert torch.equal(mapped.all(), tensor) and torch.equal(copied(rows, used, CPU), tensor)
    index = torch.tensor([6, 0, 3, 3])
    assert torch.equal(mapped.index_select(0, index), tensor.index_select(0, index))
    assert torch.equal(mapped.chosen(index.numpy()).all(), tensor[index])
    for size in (1, 3, 7, 50):
        parts = [*mapped.split(size)]
        assert [len(part) for part in parts] == [len(part) for part in tensor.split(size)]
        assert torch.equal(torch.cat(parts), tensor)
    assert (mapped.shape, mapped.dtype, mapped.dim(), len(mapped)) == (tensor.shape, tensor.dtype, 3, 7)


def test_inputs_are_copied_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_BLOCK", 100)
    rows = np.arange(240, dtype=np.uint8).reshape(40, 6)
    used = np.arange(40)[::-3].copy()
    assert np.array_equal(copied(rows, used, CPU).numpy(), rows[used])


def test_what_fits_is_copied_and_what_does_not_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 5000))
    assert [place("auto", size, cuda) for size in (500, 501)] == ["device", "host"]
    assert [place("auto", size, CPU) for size in (inputs.OWN, inputs.OWN + 1)] == ["device", "host"]
    assert (place("device", 1 << 60, CPU), place("host", 1, cuda)) == ("device", "host")
    arrays = images(validation=12)
    monkeypatch.setattr(inputs, "OWN", arrays.x_train.nbytes + arrays.x_test.nbytes)
    assert ClientData(arrays, spec().train, 0, CPU).where == "device"
    monkeypatch.setattr(inputs, "OWN", inputs.OWN - 1)
    assert ClientData(arrays, spec().train, 0, CPU).where == "host"
