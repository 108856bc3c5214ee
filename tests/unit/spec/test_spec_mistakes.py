"""Values of a run that do not fit are refused, by name."""

from __future__ import annotations

from typing import Any

import pytest
from run_specs import BASE, changed

from fedbench.errors import UserError
from fedbench.spec import DataSpec, RunSpec, Spec, validated
from fedbench.study.claims import Comparison
from fedbench.study.schema import Config, Paper

TRAIN: dict[str, Any] = BASE["train"]
POOLED = TRAIN | {"reference": "pooled"}


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("train.participation.clients", 99, "participation.clients is 99, but there are only"),
        ("data.imbalance.imratio", 0, "data.imbalance.imratio: Input should be greater than 0"),
        ("data.imbalance", {"rule": "drop_positives"}, "needs imratio"),
        ("data.imbalance", {"rule": "minority", "rho": 2}, "needs rho >= 1 and the list of minority classes"),
        ("data.validation", 1, "data.validation: give the share to hold out, from 0 to less than 1, or own"),
        ("train.epochs", 3, "give exactly one of iterations, epochs, rounds"),
        ("train.iterations", 10**12, "train.iterations: Input should be less than or equal to 1000000000"),
        ("train.evaluations", 10**9, "train.evaluations: Input should be less than or equal to 100000"),
        ("train.batches_per_epoch", 3, "give exactly one of batch_size, batches_per_epoch"),
        ("train.local_epochs", 3, "give exactly one of period, local_epochs"),
        ("train.decay_at", [0.7, 0.5], "ascending"),
        ("train.decay_at", [1.0], "in (0, 1)"),
        ("train.normalize", {"mean": [0.5], "std": [0.0]}, "greater than 0"),
        ("train.normalize", {"mean": [0.5, 0.5], "std": [0.5]}, "mean has 2 channels and std 1"),
        ("train.participation", {"rule": "random"}, "needs clients"),
        ("train.participation", {"rule": "full", "clients": 3}, "rule 'full' takes none"),
        ("train.participation", {"rule": "cyclic", "clients": 2}, "rule 'cyclic' needs groups"),
        ("train.participation", {"rule": "cyclic", "groups": 2}, "needs clients"),
        ("train.participation", {"rule": "full", "groups": 2}, "rule 'full' has no groups"),
        ("train.participation", {"rule": "cyclic", "clients": 3, "groups": 2}, "the smallest of 2 groups has only 2"),
        ("train.participation", {"rule": "cyclic", "clients": 2, "groups": 5}, "there are only 4 clients"),
        ("train.cycles", 3, "give exactly one of iterations, epochs, rounds, cycles"),
        ("train", {"cycles": 3, "period": 2, "batch_size": 2}, "cycles need participation.groups"),
        ("train.positives", 1.5, "with a fractional part or less than 1 (got 1.5)"),
        ("train.positives", 8, "positives needs batch_size, and must be smaller"),
        ("train.stage_every", 8, "stage_every and stage_factor go together"),
        ("train.stages", {"first": 2, "factor": 0.5}, "at most one of decay_at, stage_every, stages"),
        ("train.select", "test_auc", "train.select: String should match pattern '^val_.'"),
        ("train", TRAIN | {"reference": "local", "noise": {"std": 0.1}}, "noise"),
        ("train", TRAIN | {"reference": "local", "keep_model": True}, "keep_model"),
        ("train", POOLED | {"period": None, "local_epochs": 1, "rounds": 2, "iterations": None}, "local_epochs"),
        ("train.reference", "alone", "train.reference: Input should be"),
        ("train", {"local_epochs": 2, "iterations": 10, "batch_size": 4}, "local_epochs goes with rounds or cycles"),
        ("train", TRAIN | {"batchsize": 4}, "train.batchsize: unknown key. Did you mean 'batch_size'?"),
        ("data.imbalance", {"imration": 0.1}, "data.imbalance.imration: unknown key. Did you mean 'imratio'?"),
        ("data", {"clients": 3}, "data.dataset: Field required"),
        ("start", {"weights": "a.pt"}, "give either run, or weights with sha256"),
        ("start", {"run": BASE}, "keeps no model: give it train.keep_model: true"),
    ],
)  # fmt: skip
def test_values_outside_their_range_are_named(place: str, value: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        validated(RunSpec, changed(place, value), "config/papers/toy.yaml")
    message = str(caught.value)
    assert says in message and message.startswith("config/papers/toy.yaml: ") and "\n" not in message


def test_selection_needs_a_validation_part() -> None:
    run = changed("train.select", "val_auc", changed("data.validation", 0))
    with pytest.raises(UserError, match=r"data\.validation holds nothing out"):
        validated(RunSpec, run, "here")


@pytest.mark.parametrize(
    ("model", "wrong", "belongs"),
    [
        (Paper, {"task": {"name": "detailed"}}, "task: .* under defaults or datasets.NAME or methods.NAME"),
        (Paper, {"rows": ["p"]}, "rows: .* under tables.NAME"),
        (Paper, {"datasets": {"Mine": {"clients": 4}}}, r"Mine\.clients: .* under datasets\.NAME\.data(;|$)"),
        (Paper, {"methods": {"M": {"batch_size": 4}}}, r"batch_size: .* under methods\.NAME\.train(;|$)"),
        (Config, {"train": {"iterations": 3}}, "train: .* under set, .*config/papers"),
        (Paper, {"tables": {"table1": {"metric": ["x"]}}}, r"table1\.metric: .* mean 'metrics'"),
        (RunSpec, BASE | {"batch_size": 4}, "batch_size: .* under train(;|$)"),
        (DataSpec, {"dataset": "digits", "clients": 2, "client": 2}, "client: .* mean 'clients'"),
    ],
)  # fmt: skip
def test_a_key_in_the_wrong_place_is_sent_to_its_own(
    model: type[Spec], wrong: dict[str, Any], belongs: str
) -> None:
    named = {"title": "T", "citation": "C", "key": "k"} if model is Paper else {}
    with pytest.raises(UserError, match=belongs):
        validated(model, wrong | named, "here")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"method": "A", "than": None},
            r"than: Input .* number or a valid dictionary or a valid list \(got None\)",
        ),
        ({"method": None, "than": "B"}, "method: Input should be a valid list [^;]*"),
    ],
)
def test_a_value_of_no_type_of_a_union_is_one_mistake_and_the_same_in_two_places_two(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=f"^here: {said}$"):
        validated(Comparison, wrong | {"metric": "test_auc"}, "here")
    with pytest.raises(UserError, match=rf"^here: {said}; metric: Input should be a valid [^;]*$"):
        validated(Comparison, wrong | {"metric": None}, "here")


def test_what_is_no_mapping_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^here: [^:]"):
        validated(RunSpec, [1], "here")
