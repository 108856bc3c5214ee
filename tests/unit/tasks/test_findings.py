"""Several findings at once: loss, measure, and a run that another starts from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from world import images

from fedbench.data.clients import Arrays
from fedbench.errors import UserError
from fedbench.objectives.metrics import auc
from fedbench.objectives.multilabel import bits, multilabel
from fedbench.testing import check_task, simulation

TASK = {"name": "findings", "options": {"count": 3}}


def coded(dtype: type = np.float32) -> Arrays:
    """Images with classes 0 to 7, and the top row's first pixels bright for each bit."""
    arrays = images((30, 40), n_classes=8, dtype=dtype)
    for x, y in ((arrays.x_train, arrays.y_train), (arrays.x_test, arrays.y_test)):
        x[:, 0, 0] = 0
        for bit in range(3):
            x[:, 0, 0, bit] = 2 * (y >> bit & 1)
    return arrays


def test_the_contract_of_a_task_holds() -> None:
    check_task("findings", {"count": 3}, coded())


@pytest.mark.usefixtures("double")
def test_the_loss_is_the_mean_over_findings_and_samples() -> None:
    scores, codes = torch.randn(2, 4, 3), torch.tensor([[0, 5, 7, 2], [1, 1, 3, 6]])
    weight = torch.tensor([[0.25, 0.25, 0.5, 0.0], [0.5, 0.5, 0.0, 0.0]])
    assert bits(codes, 3)[0].tolist() == [[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]]
    for shares in (None, weight):
        for client in range(2):
            total = 0.0
            for sample in range(4):
                share = 0.25 if shares is None else float(shares[client, sample])
                for finding in range(3):
                    p = torch.sigmoid(scores[client, sample, finding])
                    hit = int(codes[client, sample]) >> finding & 1
                    total -= share / 3 * float(torch.log(p if hit else 1 - p))
            assert float(multilabel(scores, codes, shares)[client]) == pytest.approx(total)


def test_it_learns_all_findings_with_adam_and_measures_their_mean_auc() -> None:
    params = {"lr": 0.02, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}
    outcome = simulation("adam", params, coded(), task=TASK, rounds=60).run()
    assert outcome.metrics["test_auc"] > 0.95 > outcome.curve[0]["test_auc"]
    arrays = coded()
    # findings 1 and 2 nowhere
    one_sided = dataclasses.replace(arrays, y_test=np.where(arrays.y_test & 1, 1, 0))
    first = simulation("adam", params, one_sided, task=TASK, rounds=1)
    measured = first.run().metrics["test_auc"]
    outputs = first.evaluator._net.scores(
        first.state.server["x"][None], torch.from_numpy(one_sided.x_test)[None], None, train=False
    )
    assert measured == pytest.approx(auc(outputs[0, :, 0].numpy(), one_sided.y_test))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match="2 findings make 4 classes, but the labels go up to 7"):
        simulation("fedavg", {"lr": 0.1}, coded(), task={"name": "findings", "options": {"count": 2}})
    with pytest.raises(UserError, match="count is from 1 to 16, not 0"):
        simulation("fedavg", {"lr": 0.1}, coded(), task={"name": "findings", "options": {"count": 0}})
