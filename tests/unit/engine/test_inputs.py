"""Inputs that stay in their file give the same batches and the same numbers as inputs on the device."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from world import CONDITIONAL, CPU, images, points, same, simulate, spec

from fedbench.data import inputs, round_batches
from fedbench.data.clients import Arrays, ClientData
from fedbench.data.inputs import Mapped, copied, place
from fedbench.data.multi_source import Rows
from fedbench.engine.outcome import Outcome
from fedbench.spec import RunSpec, TaskSpec

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
