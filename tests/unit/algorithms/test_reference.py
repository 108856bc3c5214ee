"""Every method equals its plain reference after several rounds, in double precision."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import nn
from world import CPU, MEAN, METHODS, PARAMS, SUMS, images, simulate, spec, tiny_norm

from fedbench import net as network
from fedbench.engine.execution import Execution
from fedbench.engine.schedule import participants
from fedbench.engine.simulate import Simulation
from fedbench.models import mlp

ROUNDS = 5
STAGES = (2, 4)
CLIMB = ("fedavg", "scaffold", "focal_loss", "ratio_loss", "climb", "climb_scaffold")
A_SCAFFOLD = {"c_own", "seen", "steps", "cycle", "pending"}
"""What the reference has no need of: it keeps all gradients of a cycle."""
COUNTS = {"path", "passed", "path_own", "passed_own", "stage", "stage_own"}
"""What averages over a stage are made of."""
DUAL = ("coda", "coda_plus", "codasca", "local_sgdam", "local_scgdam")
FIELD = ("fednova", "feddyn", "fedadam", "fedyogi", "moon", "fedlc")

pytestmark = pytest.mark.usefixtures("double")


def compare(
    monkeypatch: pytest.MonkeyPatch, method: str, with_norm: bool = False, chunk: int | None = 1, n_classes: int = 2,
    sizes: tuple[int, ...] = (20, 26, 31), train: dict[str, Any] | None = None, rtol: float = 1e-9, **params: Any,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Train with the engine and with the reference, compare all that server and clients hold, and return it."""
    outputs = 1 if n_classes == 2 else n_classes

    def fresh() -> nn.Module:
        if with_norm:
            return tiny_norm(outputs=outputs)
        return mlp.build((1, 6, 6), outputs, hidden=[4], activation="tanh")

    torch.manual_seed(3)
    module = fresh()
    weights = {name: value.clone() for name, value in module.state_dict().items()}

    def build(*args: Any, **kwargs: Any) -> network.Net:
        copy = fresh()
        copy.load_state_dict(weights)
        return network.Net(copy)

    monkeypatch.setattr(network, "build_network", build)
    arrays = images(sizes, dtype=np.float64, n_classes=n_classes)
    how = {"rounds": ROUNDS} | (train or {})
    how = {"decay_at": [at / how["rounds"] for at in STAGES], "decay_factor": 0.5} | how
    run = spec(method, params, clients=len(sizes), **how)
    cycle, epochs = run.train.participation.groups or 1, run.train.local_epochs
    simulation, outcome = simulate(run, arrays, chunk)
    assert outcome.status == "finished"

    def batch_of(batch: Any) -> reference.Data:
        return batch.inputs[0], batch.labels[0]

    data = simulation.data
    world = reference.World(
        module=module,
        clients=[(torch.tensor(arrays.x_train[c]), torch.tensor(arrays.y_train[c])) for c in arrays.clients],
        batches=data.plan,
        first=lambda k, purpose: batch_of(data.draw(k, 6, purpose)),
        draw=lambda k, n, r: batch_of(data.draw(k, n, time=r)),
        auxiliary=[batch_of(batch) for batch in data.auxiliary(4)],
        prior=float(np.mean([arrays.y_train[i] == 1 for c in arrays.clients for i in c])),
        rounds=how["rounds"],
        stages=tuple(at for at in STAGES if at % cycle == 0),
        factor=0.5,
        chosen=lambda r: participants(run.train.participation, len(sizes), r, run.seed),
        clip_norm=run.train.clip_norm,
        clip_value=run.train.clip_value or float("inf"),
        weight_decay=run.train.weight_decay,
        cycle=cycle,
        epoch_batches=[
            len(data.plan(k, 0)) // epochs if epochs else n // run.train.batch_size
            for k, n in enumerate(sizes)
        ],
        opening=lambda k, n: batch_of(data.draw(k, n, "draw opening", 0)),
        passive=lambda sign, r, k, n, amount: simulation.problem.stream(f"passive {sign}", r, k).choice(
            n, min(n, amount * run.train.period) if run.train.period else n, replace=False
        ),
    )
    expected = reference.method(method)(world, **(PARAMS[method] | params))
    result = {**simulation.server, **simulation.state.own}
    assert result.keys() - expected.keys() <= {"anchor", "holders", "kept", *COUNTS, *A_SCAFFOLD}
    shared = result.keys() & expected.keys()
    mine, theirs = ({name: tensors[name] for name in shared} for tensors in (result, expected))
    torch.testing.assert_close(mine, theirs, rtol=rtol, atol=rtol / 100)
    moved = result["x"][: simulation.problem.net.d] - simulation.problem.net.initial()
    assert moved.norm() > 1e-2  # else an equality would say nothing
    return result


@pytest.mark.parametrize("with_norm", [False, True], ids=["mlp", "batch-norm"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method(monkeypatch: pytest.MonkeyPatch, method: str, with_norm: bool) -> None:
    compare(monkeypatch, method, with_norm)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_with_clients_stacked(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    compare(monkeypatch, method, with_norm=True, chunk=None)


@pytest.mark.parametrize("method", METHODS)
def test_one_client_is_the_method_on_one_machine(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    compare(monkeypatch, method, sizes=(26,))


@pytest.mark.parametrize("method", METHODS)
def test_clipping_and_weight_decay(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    compare(monkeypatch, method, train={"clip_norm": 0.1, "weight_decay": 0.05})


@pytest.mark.parametrize("method", ["coda_plus", "codasca", "fedavg"])
def test_clipping_of_each_entry_as_in_codascas_program(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Before weight decay and the proximal term."""
    plain = compare(monkeypatch, method)["x"]
    cut = compare(monkeypatch, method, train={"clip_value": 0.02, "weight_decay": 0.05})["x"]
    assert (plain - cut).norm() > 1e-2


@pytest.mark.parametrize("with_norm", [False, True], ids=["mlp", "batch-norm"])
@pytest.mark.parametrize("hvp", ["first_order", "finite_difference"])
def test_hessian_modes(monkeypatch: pytest.MonkeyPatch, hvp: str, with_norm: bool) -> None:
    compare(monkeypatch, "local_scgdam", with_norm, hvp=hvp)


@pytest.mark.parametrize("method", ["coda", "codasca", "local_sgdam", "local_scgdam"])
def test_logit_scores_and_running_means(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    compare(monkeypatch, method, score="logit", dual_step="running_means", lr=0.05, lr_dual=0.05)


@pytest.mark.parametrize("method", DUAL)
def test_the_dual_variable_from_minus_one_and_its_bound(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    plain = compare(monkeypatch, method, lr_dual=2.0)
    low = compare(monkeypatch, method, lr_dual=2.0, alpha_start=-1.0)
    bound = compare(monkeypatch, method, lr_dual=2.0, alpha_least=-0.001)
    assert (plain["x"] - low["x"]).norm() > 1e-2
    assert (plain["alpha"] - bound["alpha"]).abs() > 1e-4 and float(bound["alpha"]) >= -0.001


@pytest.mark.parametrize("with_norm", [False, True], ids=["mlp", "batch-norm"])
@pytest.mark.parametrize(
    "how", [{"ascent": "stage"}, {"stage_start": "average"}, {"ascent": "stage", "stage_start": "average"}]
)
def test_codas_stages_as_in_its_program(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, str], with_norm: bool
) -> None:
    """Three stages; restarts have 12, 36 and 108 samples of a client, or all it has."""
    plain = compare(monkeypatch, "coda", with_norm, restart_samples=4, sizes=(20, 31))
    other = compare(monkeypatch, "coda", with_norm, restart_samples=4, sizes=(20, 31), **how)
    assert (plain["x"] - other["x"]).norm() > 1e-3
    some = {"participation": {"rule": "random", "clients": 2}, "clip_norm": 0.4, "weight_decay": 0.02}
    compare(monkeypatch, "coda", with_norm, None, train=some, alpha_least=-0.3, **how)


def test_codas_alpha_is_constant_within_a_stage() -> None:
    """Set before the first, too, for the sums and counts that each client sends."""
    seen: list[float] = []
    run = spec("coda", {"ascent": "stage"}, rounds=5, decay_at=[0.4, 0.8])
    how = Execution(on_round=lambda _: seen.append(float(simulation.server["alpha"])))
    simulation = Simulation(run, images(dtype=np.float64), CPU, how)
    metrics = simulation.run().metrics
    assert seen[0] == seen[1] != seen[2] == seen[3] != seen[4] != 0 != seen[0]
    plain = simulate(spec("coda", rounds=5, decay_at=[0.4, 0.8]), images(dtype=np.float64))[1].metrics
    assert metrics["floats_up"] - plain["floats_up"] == 4


def test_from_minus_one_it_is_the_loss_of_codascas_program() -> None:
    """Its dual variable is alpha + 1, from 0 and never below: main_codasca_cifar.py 106-119, 134."""
    arrays, at_minus_one = images((30,), dtype=np.float64), {"alpha_start": -1.0, "alpha_least": -1.0}
    run = spec("coda_plus", {**at_minus_one, "proximal": 0.0}, rounds=3, clients=1, network="mlp")
    simulation, _ = simulate(run, arrays)
    net, data, p = simulation.problem.net, simulation.data, simulation.problem.prior
    x, dual = torch.cat([net.initial(), torch.zeros(2)]), torch.zeros(())
    for r in range(3):
        for places in data.plan(0, r):
            x, dual = x.requires_grad_(), dual.requires_grad_()
            mine = arrays.clients[0][places]
            inputs, y = torch.tensor(arrays.x_train[mine]), torch.tensor(arrays.y_train[mine])
            s = torch.sigmoid(net.scores(x[None, :-2], inputs[None])[0, :, 0])
            of = [(y == label).double() for label in (1, 0)]
            loss = ((1 - p) * (s - x[-2]) ** 2 * of[0] + p * (s - x[-1]) ** 2 * of[1]).mean()
            coupling = p * (1 - p) + (p * s * of[1] - (1 - p) * s * of[0]).mean()
            loss = loss + 2 * dual * coupling - p * (1 - p) * dual**2
            in_x, in_dual = torch.autograd.grad(loss, (x, dual))
            x, dual = (x - 0.5 * in_x).detach(), (dual + 0.4 * in_dual).detach().clamp(0, 999)
    torch.testing.assert_close(simulation.server["x"], x, rtol=0, atol=1e-12)
    torch.testing.assert_close(simulation.server["alpha"] + 1, dual, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", DUAL)
def test_a_and_b_decay_and_are_clipped_where_asked(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    train = {"clip_value": 0.02, "clip_norm": 0.3, "weight_decay": 0.4}
    ends = [compare(monkeypatch, method, train=train, a_b=how)["x"] for how in ("free", "decay", "clip")]
    assert all((a - b)[-2:].abs().max() > 1e-3 for a, b in itertools.combinations(ends, 2))


@pytest.mark.parametrize("method", ["climb", "climb_scaffold"])
def test_climbs_losses_as_sums_over_a_clients_batches(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    train = {"period": None, "local_epochs": 2, "batch_size": None, "batches_per_epoch": 3}
    sizes = (20, 27, 31, 4)  # 4, 3, 4 and 4 batches, the last ones incomplete
    how: dict[str, Any] = {"n_classes": 3, "sizes": sizes, "train": train}
    code = compare(monkeypatch, method, dual_scale="code", **how)
    paper = compare(monkeypatch, method, dual_lr=3.0 / 4, **how)
    assert (code["duals"] - paper["duals"]).norm() > 1e-3


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", ["ratio_loss", "local_sgdm_rl"])
def test_both_forms_of_the_ratio_loss(
    monkeypatch: pytest.MonkeyPatch, method: str, chunk: int | None
) -> None:
    mean, sums = (compare(monkeypatch, method, chunk=chunk, **form) for form in (MEAN, SUMS))
    assert (mean["x"] - sums["x"]).norm() > 1e-3


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("method", [*CLIMB, *FIELD])
def test_some_of_many_unequal_clients(
    monkeypatch: pytest.MonkeyPatch, method: str, chunk: int | None
) -> None:
    """climb's world: several classes, local epochs, batches of a share of the data, clipping and weight decay."""
    train = {
        "participation": {"rule": "random", "clients": 3}, "period": None, "local_epochs": 2, "batch_size": None,
        "batches_per_epoch": 3, "clip_norm": 0.4, "weight_decay": 0.02,
    }  # fmt: skip
    rtol = 1e-9 if chunk == 1 else 1e-5  # shares of padded batches are kept in single precision
    compare(monkeypatch, method, False, chunk, 3, (20, 26, 31, 4), train, rtol)


def test_climbs_constants_as_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch, "climb", dual_scale="code", dual_lr=1.0)


def test_climbs_duals_stop_at_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    duals = compare(monkeypatch, "climb", dual_max=0.004, tolerance=0.0)["duals"]
    assert float(duals.max()) == 0.004


@pytest.mark.parametrize("chunk", [1, None])
def test_clients_of_unequal_batches_keep_what_is_theirs(
    monkeypatch: pytest.MonkeyPatch, chunk: int | None
) -> None:
    """With batch-norm the engine stacks clients of equal batches; variates go back to whose they are."""
    compare(monkeypatch, "scaffold", with_norm=True, chunk=chunk, sizes=(5, 26, 9, 5))


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("anchor", ["last", "average", "own_average"])
@pytest.mark.parametrize("variates", ["both", "primal", "dual"])
def test_codasca_with_some_of_many_unequal_clients(
    monkeypatch: pytest.MonkeyPatch, variates: str, anchor: str, chunk: int | None
) -> None:
    """Local epochs on clients of unequal size: the variates of each are means over its own number of steps."""
    train = {
        "participation": {"rule": "random", "clients": 3}, "period": None, "local_epochs": 2,
        "clip_norm": 0.4, "weight_decay": 0.02,
    }  # fmt: skip
    rtol = 1e-9 if chunk == 1 else 1e-5  # shares of padded batches are kept in single precision
    how = {"variates": variates, "anchor": anchor}
    result = compare(monkeypatch, "codasca", False, chunk, 2, (20, 26, 31, 5), train, rtol, **how)
    assert result["c_own"].shape == (4, {"both": 153 + 3, "primal": 153 + 2, "dual": 1}[variates])


@pytest.mark.parametrize("chunk", [1, None])
def test_codasca_with_batch_norm_and_some_of_many_unequal_clients(
    monkeypatch: pytest.MonkeyPatch, chunk: int | None
) -> None:
    """Clients whose batches differ are no stack: padding would enter their statistics."""
    train = {"participation": {"rule": "random", "clients": 3}, "weight_decay": 0.02}
    compare(monkeypatch, "codasca", True, chunk, 2, (5, 26, 9, 5), train)
