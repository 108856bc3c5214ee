"""What federated training is held against: clients alone, and all data on one client."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from world import CPU, METHODS, images, saved, spec
from world import points as doubles

from fedbench import net
from fedbench.data.clients import Arrays
from fedbench.engine.execution import Execution, Outcome, Progress
from fedbench.engine.references import Alone, check_reference, pooled, simulation_of
from fedbench.engine.simulate import Simulation
from fedbench.engine.weights import named
from fedbench.errors import UserError
from fedbench.spec import RunSpec, StartSpec, TaskSpec

SENT = ("floats_up", "floats_down", "floats_buffers")
SIZES = (20, 26, 31)


def points(sizes: tuple[int, ...] = SIZES) -> Arrays:
    return doubles(sizes, dtype=np.float32)


def outcome_of(run: RunSpec, arrays: Arrays, how: Execution | None = None) -> Outcome:
    return simulation_of(run, arrays, CPU, how or Execution()).run()


def plain(row: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name not in SENT and "device_" not in name}


def sited(arrays: Arrays, site_train: np.ndarray | None = None) -> Arrays:
    """Client k has the samples of site k, and every third test sample is of a site."""
    site = np.zeros(len(arrays.y_train), dtype=np.int64)
    for number, positions in enumerate(arrays.clients):
        site[positions] = number
    tested = np.arange(len(arrays.y_test)) % 3
    return dataclasses.replace(
        arrays, site_test=tested, sites=("A", "B", "C"), site_train=site if site_train is None else site_train
    )


@pytest.mark.parametrize("reference", ["local", "pooled"])
@pytest.mark.parametrize("method", METHODS)
def test_of_one_client_it_is_the_federated_run_to_the_byte(method: str, reference: str) -> None:
    arrays = images((26,))
    run, other = (spec(method, clients=1, reference=how, decay_at=[0.5]) for how in (None, reference))
    federated, outcome = outcome_of(run, arrays), outcome_of(other, arrays)
    assert repr([*map(plain, outcome.curve)]) == repr([*map(plain, federated.curve)])
    assert repr(plain(outcome.metrics)) == repr(plain(federated.metrics)) and run.key != other.key
    assert {outcome.metrics[name] for name in SENT} == {0.0} and federated.metrics["floats_up"] > 0


def test_each_client_trains_by_itself_and_is_measured_on_its_sites_patients() -> None:
    arrays = sited(points())
    outcome = outcome_of(spec(reference="local"), arrays)
    alone = [
        Simulation(spec(clients=1), dataclasses.replace(arrays, clients=[own]), CPU).run().metrics
        for own in arrays.clients
    ]
    for name in ("test_auc", "test_ap", "train_auc", "train_loss"):
        assert outcome.metrics[name] == pytest.approx(np.mean([row[name] for row in alone]))
    sites = [alone[k][f"test_auc@{site}"] for k, site in enumerate("ABC")]
    assert [outcome.metrics[f"test_auc@{site}"] for site in "ABC"] == sites
    assert outcome.metrics["worst_site_test_auc"] == min(sites)
    assert outcome.metrics["site_std_test_auc"] == pytest.approx(np.std(sites))
    federated = outcome_of(spec(), arrays).metrics
    assert outcome.metrics["samples"] == federated["samples"] == 3 * 5 * 4 * 6
    assert outcome.metrics["round"] == federated["round"]
    assert "device_mean_test_auc" in federated and not any("device_" in name for name in outcome.metrics)
    assert len(outcome.curve) == 3 and outcome.curve[-1]["test_auc"] == outcome.metrics["test_auc"]
    mixed = outcome_of(spec(reference="local"), sited(points(), np.arange(77) % 3))
    everybody = np.mean([row["test_auc@B"] for row in alone])  # who has samples of a site shares its number
    assert mixed.metrics["test_auc@B"] == pytest.approx(everybody)


def test_statistics_are_not_sent_and_samples_that_are_only_scored_count() -> None:
    for reference in (None, "local", "pooled"):
        run = spec(network="resnet20", options={"blocks": 1}, reference=reference)
        assert (outcome_of(run, images(SIZES, side=8)).metrics["floats_buffers"] > 0) == (reference is None)
    stages = {"rounds": None, "iterations": 20, "decay_at": [0.5]}
    scored = [outcome_of(spec("coda", reference=how, **stages), points()) for how in (None, "local")]
    ours, theirs = (outcome.metrics["samples_forward"] for outcome in scored)
    assert ours == theirs > 0


@pytest.mark.parametrize("reference", ["local", "pooled"])
def test_it_starts_from_the_weights_that_are_given(reference: str) -> None:
    run = spec(params={"lr": 0.0}, reference=reference)
    network = net.build_network("mlp", (3,), 1, 5, run.network.options)
    start = named(network, network.initial() + 1, None)
    run = run.model_copy(update={"start": StartSpec(weights="start.pt", sha256="0" * 64)})
    plain = run.model_copy(update={"train": run.train.model_copy(update={"reference": None})})
    expected, outcome = (
        simulation_of(asked, points(), CPU, Execution(), start).run().metrics["test_auc"]
        for asked in (plain, run)
    )
    assert outcome == expected


def test_times_are_those_of_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"test_auc": 0.5}
    of_client = Outcome("finished", "", [row], [], row, 3.0, [1.0], [2.0])
    monkeypatch.setattr(Simulation, "run", lambda self: of_client)
    outcome = outcome_of(spec(reference="local"), points())
    assert (outcome.seconds, outcome.evaluation_seconds, outcome.curve_seconds) == (9, [3], [6])


def one_class(arrays: Arrays, *clients: int) -> Arrays:
    y = arrays.y_train.copy()
    for client in clients:
        y[arrays.clients[client]] = client % 2
    return dataclasses.replace(arrays, y_train=y)


def test_a_client_of_one_class_has_no_number_and_says_why() -> None:
    arrays = sited(points())
    run = spec("coda", reference="local")
    outcome, unbroken = outcome_of(run, one_class(arrays, 1)), outcome_of(run, arrays)
    assert math.isnan(outcome.metrics["test_auc@B"]) and math.isnan(outcome.metrics["test_ap@B"])
    assert {*outcome.undefined} == {"test_auc@B", "test_ap@B"}
    assert {*outcome.undefined.values()} == {"no AUC: one class in training"}
    for site in "AC":
        assert outcome.metrics[f"test_auc@{site}"] == unbroken.metrics[f"test_auc@{site}"]
    assert outcome.metrics["worst_site_test_auc"] == min(outcome.metrics[f"test_auc@{site}"] for site in "AC")
    assert not unbroken.undefined
    several = outcome_of(spec(reference="local"), one_class(images(SIZES, n_classes=3), 1)).metrics
    assert several["test_overall_accuracy"] > 0 and several["samples"] == unbroken.metrics["samples"]


def test_where_no_client_has_two_classes_nothing_has_a_number() -> None:
    outcome = outcome_of(spec(reference="local"), one_class(sited(points()), 0, 1, 2))
    asked = ["test_auc", "test_auc@A", "test_ap"]
    assert outcome.status == "finished" and all(math.isnan(outcome.metrics[name]) for name in asked)
    assert {*asked} <= outcome.undefined.keys() and len(outcome.curve) == 1


@pytest.mark.parametrize(
    ("sizes", "train", "batch"),
    [
        (SIZES, {}, 18),
        ((3, 26, 31), {}, 15),  # a hospital of three has batches of three
        (SIZES, {"batch_size": None, "batches_per_epoch": 4}, 5 + 6 + 7),
        (SIZES, {"participation": {"rule": "random", "clients": 2}}, 12),
        (SIZES, {"positives": 2}, 18),
        (SIZES, {"positives": 2, "participation": {"rule": "random", "clients": 2}}, 12),
        (SIZES, {"positives": 0.5}, 18),
    ],
)
def test_pooled_sees_as_many_samples_in_as_many_steps(
    sizes: tuple[int, ...], train: dict[str, Any], batch: int
) -> None:
    arrays = points(sizes)
    run = spec(reference="pooled", **train)
    changed, together = pooled(run, arrays)
    assert changed.train.batch_size == batch
    assert [own.tolist() for own in together.clients] == [np.concatenate(arrays.clients).tolist()]
    ours, federated = outcome_of(run, arrays), outcome_of(spec(**train), arrays)
    assert ours.metrics["samples"] == federated.metrics["samples"]
    assert [row["iteration"] for row in ours.curve] == [row["iteration"] for row in federated.curve]
    if isinstance(run.train.positives, int):
        assert changed.train.positives == batch // 3


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("method", ["fedavg", "local_sgdm", "coda_plus"])
def test_pooled_of_equal_clients_is_federated_averaging_of_each_step(method: str) -> None:
    """On full batches, the mean of the clients' gradients is that of all data."""
    how: dict[str, Any] = {"period": 1, "rounds": 12, "batch_size": None, "batches_per_epoch": 1}
    arrays = images((18, 18, 18), dtype=np.float64)
    single, both = (
        simulation_of(spec(method, reference=reference, **how), arrays, CPU) for reference in ("pooled", None)
    )
    assert isinstance(single, Simulation) and isinstance(both, Simulation)
    for simulation in (single, both):
        simulation.run()
    torch.testing.assert_close(single.server["x"], both.server["x"], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("reference", ["local", "pooled"])
@pytest.mark.parametrize(
    "train",
    [
        {"rounds": None, "epochs": 6},
        {"rounds": None, "cycles": 4, "stages": {"first": 1, "factor": 0.5},
         "participation": {"rule": "cyclic", "clients": 1, "groups": 3}},
    ],
)  # fmt: skip
def test_it_is_as_long_as_the_federated_run(reference: str, train: dict[str, Any]) -> None:
    arrays = points((6, 26, 31))
    ours, federated = (outcome_of(spec(reference=how, **train), arrays) for how in (reference, None))
    assert [row["round"] for row in ours.curve] == [row["round"] for row in federated.curve]


def test_a_stopped_run_goes_on_to_the_same_bytes_and_counts_whole_clients_as_done(tmp_path: Path) -> None:
    """The checkpoint of a client may be lost: what it ended with is in that of the run."""
    run, arrays = spec(reference="local"), sited(points())
    unbroken, seen, begun, dies = outcome_of(run, arrays), list[int](), list[int](), [2, 8]

    def die(progress: Progress) -> None:
        assert progress.rounds == 15
        seen.append(progress.round)
        begun.append(progress.begun_at)
        if dies and progress.round == dies[0]:
            dies.pop(0)
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            outcome_of(run, arrays, saved(tmp_path / "checkpoint.pt", die))
    for path in tmp_path.glob("client*"):
        path.unlink()
    outcome = outcome_of(run, arrays, saved(tmp_path / "checkpoint.pt", die))
    assert repr((outcome.curve, outcome.metrics)) == repr((unbroken.curve, unbroken.metrics))
    assert seen == [1, 2, *range(2, 9), *range(6, 16)], "what was trained is not trained again"
    assert begun[-1] == 5


def test_kept_scores_are_those_of_the_models_of_their_sites(tmp_path: Path) -> None:
    """Client 0 has one class, so no model; a stop after the first that trains loses none of its scores."""
    arrays = sited(dataclasses.replace(points(), validation=np.arange(0, 77, 10)))
    arrays.y_train[arrays.clients[0]] = 0
    run, how = spec(reference="local"), Execution(keep=True)

    def die(progress: Progress) -> None:
        if progress.round == 7:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.pt"
    with pytest.raises(KeyboardInterrupt):
        outcome_of(run, arrays, dataclasses.replace(saved(path, die), keep=True))
    outcome = outcome_of(run, arrays, dataclasses.replace(saved(path), keep=True))
    assert outcome.predictions is not None and outcome.model is None
    assert arrays.site_test is not None and arrays.site_train is not None
    sites = {"test": arrays.site_test, "val": arrays.site_train[arrays.validation]}
    for client in (1, 2):
        alone = dataclasses.replace(arrays, clients=[arrays.clients[client]])
        single = Simulation(spec(clients=1), alone, CPU, how).run().predictions
        assert single is not None
        for part, (labels, scores) in outcome.predictions.items():
            at = sites[part] == client
            assert at.any() and (scores[at] == single[part][1][at]).all()
            assert (labels == single[part][0]).all()
    assert all(np.isnan(outcome.predictions[part][1][sites[part] == 0]).all() for part in sites)
    plain_outcome = outcome_of(run, arrays)
    assert plain_outcome.predictions is None and repr(plain_outcome.metrics) == repr(outcome.metrics)
    shared = sited(points(), np.zeros(len(arrays.y_train), dtype=np.int64))
    assert outcome_of(run, shared, how).predictions is None, "three models for site A"


def test_without_sites_of_the_test_part_it_ends_and_keeps_no_scores() -> None:
    arrays = dataclasses.replace(sited(points()), site_test=None)
    assert outcome_of(spec(reference="local"), arrays, Execution(keep=True)).predictions is None


def test_one_client_that_diverges_is_a_run_that_does() -> None:
    outcome = outcome_of(spec(params={"lr": 1e30}, reference="local"), points())
    assert outcome.status == "diverged" and "client 0: " in outcome.reason and not outcome.metrics


def test_what_has_no_reference_is_refused() -> None:
    task = TaskSpec(name="more_positives", options={"positives": 2})
    run = spec(reference="pooled").model_copy(update={"task": task})
    with pytest.raises(UserError, match="pooled: task 'more_positives'"):
        simulation_of(run, points(), CPU)
    assert isinstance(simulation_of(spec(reference="local"), points(), CPU), Alone)
    task = TaskSpec(name="detailed", options={"metrics": ["worst_client_accuracy"]})
    for reference in ("local", "pooled"):
        with pytest.raises(UserError, match="worst_client_accuracy is over the clients"):
            check_reference(spec(reference=reference).model_copy(update={"task": task}))
