"""CLIMB: weights, the box of the duals, both scales of its constants, and a constrained optimum in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from world import PARAMS, images, simulate, spec

from fedbench.algorithms import make_method
from fedbench.algorithms._climb import Climb, weights
from fedbench.data.clients import Arrays
from fedbench.engine import evaluator
from fedbench.random import stream

SIZE, Q, TOLERANCE = 40, 0.6, 0.1


def constant_inputs() -> Arrays:
    """Two clients whose inputs are all 1: the first has label 1 only, the second label 1 in a share Q."""
    labels = np.concatenate([np.ones(SIZE), np.arange(SIZE) < Q * SIZE]).astype(np.int64)
    inputs = np.ones((2 * SIZE, 1), np.float32)
    clients = [np.arange(SIZE), np.arange(SIZE, 2 * SIZE)]
    return Arrays(inputs, labels, inputs, labels, clients, np.zeros(0, np.int64), 2)


@pytest.mark.parametrize("method", ["climb", "climb_scaffold"])
def test_climb_reaches_the_constrained_optimum_of_a_two_client_problem(method: str) -> None:
    # With one logit z: f_1 = softplus(z) - z and f_2 = softplus(z) - Q z, so f_2 - mean = (1 - Q) z / 2 <= eps binds at
    # z = 2 eps / (1 - Q), below the unconstrained optimum logit((1 + Q) / 2); stationarity of the Lagrangian there
    # gives lambda_2 = 2 (1 + Q - 2 sigmoid(z)) / (1 - Q), lambda_1 = 0.
    constants = {"lr": 0.3, "dual_lr": 1.0, "tolerance": TOLERANCE, "dual_every": 1, "dual_max": 5.0}
    how = {"rounds": 400, "period": 1, "batch_size": SIZE, "evaluations": 1, "options": {"hidden": []}}
    params = constants | ({"server_lr": 1.0} if method == "climb_scaffold" else {})
    simulation, outcome = simulate(spec(method, params, clients=2, **how), constant_inputs())
    z = float(simulation.server["x"].sum())
    optimum = 2 * TOLERANCE / (1 - Q)
    assert optimum < math.log((1 + Q) / (1 - Q)) - 0.5  # the constraint does bind
    assert z == pytest.approx(optimum, abs=1e-3)
    price = 2 * (1 + Q - 2 / (1 + math.exp(-optimum))) / (1 - Q)
    assert simulation.server["duals"].tolist() == pytest.approx([0.0, price], abs=5e-3)
    assert outcome.metrics["dual_max"] == pytest.approx(price, abs=5e-3)


def test_client_weights_sum_to_the_number_of_clients_and_can_be_negative() -> None:
    duals = torch.tensor([0.0, 5.0, 0.0, 5.0, 5.0])
    assert float(weights(duals).sum()) == pytest.approx(5)
    assert weights(duals).tolist() == pytest.approx([-2.0, 3.0, -2.0, 3.0, 3.0])
    assert climb().report({"duals": duals}) == {
        "dual_mean": 3.0,
        "dual_max": 5.0,
        "duals_at_bound": 3.0,
        "negative_weights": 2.0,
    }


def climb(**changes: Any) -> Climb:
    """Build the method with changed constants."""
    method = make_method("climb", PARAMS["climb"] | changes)
    assert isinstance(method, Climb)
    return method


def test_a_dual_step_moves_by_the_constraint_s_violation_and_stays_in_the_box() -> None:
    method = climb(dual_lr=2.0, tolerance=0.1, dual_max=1.5)
    duals, losses = torch.tensor([0.0, 0.5, 1.4, 0.1]), torch.tensor([1.0, 1.4, 3.0, 0.6])  # mean 1.5
    first = torch.ones(4)
    assert method.dual_step(duals, losses, first).tolist() == pytest.approx([0.0, 0.1, 1.5, 0.0])
    gentle = method.dual_step(torch.full((4,), 1.0), torch.tensor([1.5, 1.6, 1.7, 1.2]), first)
    assert gentle.tolist() == pytest.approx([0.8, 1.0, 1.2, 0.2])


def test_the_code_scale_reads_the_constants_as_sums_over_batches_with_a_step_over_n() -> None:
    duals, losses = torch.tensor([0.2, 0.3]), torch.tensor([1.0, 2.0])
    batches = torch.tensor([5, 5])
    code = climb(dual_scale="code", dual_lr=0.4, tolerance=0.5).dual_step(duals, losses, batches)
    paper = climb(dual_scale="paper", dual_lr=5 * 0.4 / 2, tolerance=0.5 / 5).dual_step(
        duals, losses, batches
    )
    assert torch.allclose(code, paper)
    # what the official program does: sums of a client's batch means, eta_D / N
    code = climb(dual_scale="code", dual_lr=0.4, tolerance=0.5).dual_step(duals, losses, torch.tensor([6, 4]))
    sums = torch.tensor([6.0, 8.0])
    by_hand = duals + 0.4 / 2 * (sums - sums.mean() - 0.5)
    assert torch.allclose(code, by_hand.clamp(0, 1.5))


def test_training_with_a_negative_weight_moves_away_from_that_client() -> None:
    arrays = images(sizes=(18, 18, 18))
    run = spec("climb", {"dual_lr": 0.0}, rounds=1, evaluations=1)
    plain, _ = simulate(run, arrays)
    pushed, _ = simulate(spec("climb", {"dual_lr": 0.0}, rounds=2, evaluations=1), arrays)
    pushed.server["duals"] = torch.tensor([0.0, 4.5, 4.5])  # weights -2, 2.5, 2.5
    before = pushed.server["x"].clone()
    clients = pushed.train_round()
    moved = pushed.server["x"] - before
    expected = sum(w * (clients["x"][i] - before) for i, w in enumerate([-2.0, 2.5, 2.5])) / 3
    assert torch.allclose(moved, expected, atol=1e-6)
    assert not torch.equal(plain.server["x"], pushed.server["x"])


def test_duals_and_losses_of_all_clients_are_traced() -> None:
    simulation, outcome = simulate(spec("climb", rounds=4, evaluations=2), images())
    assert [(row["round"], row["quantity"]) for row in outcome.clients] == [
        (at, name) for at in (0, 2, 4) for name in ("dual", "loss")
    ]
    last = {row["quantity"]: [row[f"client{k}"] for k in range(3)] for row in outcome.clients[-2:]}
    assert last["dual"] == simulation.server["duals"].tolist()
    assert last["loss"] == simulation.server["client_losses"].tolist()
    assert "negative_weights" in outcome.metrics


def padded_cropped_flipped(image: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """One image [C, H, W] within 4 pixels of black, cut out at a random place, mirrored half of the time."""
    height, width = image.shape[1:]
    black = np.pad(image, ((0, 0), (4, 4), (4, 4)))
    top, left, mirror = (numbers * (9, 9, 2)).astype(int)
    window = black[:, top : top + height, left : left + width]
    return window[:, :, ::-1] if mirror else window


@pytest.mark.parametrize("method", ["climb", "climb_scaffold"])
def test_a_dual_step_may_take_the_losses_of_augmented_images(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those at the new model, drawn anew at each dual step; how many are scored in one call is no matter."""
    monkeypatch.setattr(evaluator, "TRAIN_CHUNK", 7)
    arrays, how = images(side=8), {"augment": "pad_crop_flip", "normalize": {"mean": [0.3], "std": [0.6]}}
    constants = {"dual_losses": "augmented", "dual_every": 2}
    simulation, _ = simulate(spec(method, constants, rounds=4, **how), arrays)
    for client, positions in enumerate(arrays.clients):
        numbers = stream(0, "augment losses", client, 3).random((len(positions), 3))
        changed = [
            padded_cropped_flipped(arrays.x_train[i], row) for i, row in zip(positions, numbers, strict=True)
        ]
        inputs = torch.tensor((np.stack(changed) - 0.3) / 0.6, dtype=torch.float32)
        logits = simulation.problem.net.scores(simulation.server["x"][None], inputs[None])[0, :, 0]
        labels = torch.tensor(arrays.y_train[positions]).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        assert float(simulation.server["client_losses"][client]) == pytest.approx(float(loss), rel=1e-5)
    clean, _ = simulate(spec(method, {"dual_every": 2}, rounds=4, **how), arrays)
    assert not torch.allclose(clean.server["client_losses"], simulation.server["client_losses"], rtol=1e-3)


def test_without_augmentation_both_kinds_of_losses_are_the_same_bits() -> None:
    runs = [spec("climb", {"dual_losses": losses}, rounds=4) for losses in ("clean", "augmented")]
    clean, augmented = (simulate(run, images())[0] for run in runs)
    assert torch.equal(clean.server["duals"], augmented.server["duals"]) and clean.server["duals"].any()
