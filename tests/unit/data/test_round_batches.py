"""The batches of a round: what is made ready ahead is what each step would gather alone."""

from __future__ import annotations

import pytest
import torch
from world import CPU, images

from fedbench.data import round_batches
from fedbench.data.clients import ClientData
from fedbench.spec import TrainSpec


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
