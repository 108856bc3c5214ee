"""The key of a run: everything that changes numbers is in it; mistakes in a specification are named."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from fedbench import specs
from fedbench.errors import UserError
from fedbench.schema import Config
from fedbench.specs import RunSpec, TrainSpec, validated

BASE: dict[str, Any] = {
    "data": {
        "dataset": "digits",
        "labels": {"rule": "halves", "positive_half": "first"},
        "imbalance": {"rule": "drop_positives", "imratio": 0.1, "rho": 2.0, "minority": [1]},
        "partition": {"rule": "even", "alpha": 0.5, "delta": 1.0},
        "clients": 4,
        "validation": 0.1,
    },
    "network": {"name": "mlp", "options": {"hidden": [4]}},
    "method": "fedavg",
    "params": {"lr": 0.1},
    "train": {
        "iterations": 100, "period": 4, "batch_size": 8, "participation": {"rule": "random", "clients": 2},
        "decay_at": [0.5], "decay_factor": 0.1, "weight_decay": 0.1, "clip_norm": 1.0, "augment": "none",
        "normalize": {"mean": [0.1], "std": [0.2]}, "minority_classes": [0], "evaluations": 20,
    },
    "seed": 0,
}  # fmt: skip

CHANGES: dict[str, Any] = {
    "data.dataset": "mnist",
    "data.labels.rule": "original",
    "data.labels.positive_half": "second",
    "data.imbalance.rule": "minority",
    "data.imbalance.imratio": 0.2,
    "data.imbalance.rho": 3.0,
    "data.imbalance.minority": [2],
    "data.partition.rule": "mix",
    "data.partition.alpha": 0.6,
    "data.partition.delta": 2.0,
    "data.partition.options": {"share": 0.5},
    "data.clients": 5,
    "data.content": "0123456789abcdef",
    "data.validation": 0.2,
    "network.name": "cnn",
    "network.options.hidden": [5],
    "method": "fedprox",
    "params.lr": 0.2,
    "train.iterations": 101,
    "train.period": 8,
    "train.batch_size": 16,
    "train.participation.clients": 3,
    "train.participation": {"rule": "full"},
    "train.decay_at": [0.6],
    "train.decay_factor": 0.2,
    "train.weight_decay": 0.2,
    "train.clip_norm": 2.0,
    "train.augment": "crop_flip",
    "train.normalize.mean": [0.2],
    "train.normalize.std": [0.3],
    "train.minority_classes": [1],
    "train.evaluations": 10,
    "seed": 1,
    "numerics": specs.NUMERICS + 1,
}


def changed(place: str, value: Any, base: dict[str, Any] = BASE) -> dict[str, Any]:
    head, _, rest = place.partition(".")
    return base | {head: changed(rest, value, base[head]) if rest else value}


def fields_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    """List the places of a specification's leaves."""
    found = set[str]()
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        found |= fields_of(inner[0], f"{prefix}{name}.") if inner else {prefix + name}
    return found


@pytest.mark.parametrize("place", CHANGES)
def test_every_field_changes_the_key(place: str) -> None:
    one, other = RunSpec(**BASE), RunSpec(**changed(place, CHANGES[place]))
    assert one.key != other.key and len(one.key) == 16
    moves_data = place.startswith("data.") or place == "seed"
    keys = [spec.data.partition_key(spec.seed) for spec in (one, other)]
    assert (keys[0] != keys[1]) == moves_data  # methods and schedules share their partition


def test_no_field_was_forgotten_above() -> None:
    either = {
        "train.epochs",
        "train.rounds",
        "train.local_epochs",
        "train.batches_per_epoch",
    }  # instead of others
    tried = {*CHANGES, "train.participation.rule"}
    missing = {
        place
        for place in fields_of(RunSpec) - either
        if not any(name == place or name.startswith(f"{place}.") for name in tried)
    }
    assert not missing


def test_ways_to_say_how_long_differ() -> None:
    keys = {
        RunSpec(**(BASE | {"train": {"period": 4, "batch_size": 8, **how}})).key
        for how in ({"iterations": 100}, {"epochs": 100}, {"rounds": 100})
    }
    keys.add(RunSpec(**(BASE | {"train": {"local_epochs": 4, "batch_size": 8, "rounds": 100}})).key)
    keys.add(RunSpec(**(BASE | {"train": {"local_epochs": 4, "batches_per_epoch": 8, "rounds": 100}})).key)
    assert len(keys) == 5


def test_the_key_is_the_same_on_every_machine() -> None:
    """A literal: a change of the rule of keys orphans every finished run, and must be meant."""
    assert RunSpec(**(BASE | {"numerics": 1})).key == "f9ec885c4b3fceb7"
    assert specs.digest({"b": [1, 0.5], "a": None}) == specs.digest({"a": None, "b": [1, 0.5]})


def test_what_changes_no_numbers_is_no_part_of_a_run() -> None:
    for name in ("device", "data_dir", "client_chunk", "mirror", "checkpoint_seconds"):
        assert name in Config.model_fields
        with pytest.raises(ValueError, match=r"[Ee]xtra"):
            RunSpec(**(BASE | {name: "x"}))


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("data.imbalance.imratio", 0, "data.imbalance.imratio: Input should be greater than 0"),
        ("data.imbalance.imratio", 1, "data.imbalance.imratio: Input should be less than 1"),
        ("data.imbalance.rho", 0.5, "data.imbalance.rho"),
        ("data.imbalance", {"rule": "drop_positives"}, "needs imratio"),
        ("data.imbalance", {"rule": "minority", "rho": 2}, "needs rho >= 1 and the list of minority classes"),
        ("data.clients", 0, "data.clients: Input should be greater than or equal to 1"),
        ("data.validation", 1, "data.validation: Input should be less than 1"),
        ("data.partition.alpha", 1.5, "data.partition.alpha"),
        ("data.partition.delta", 0, "data.partition.delta"),
        ("train.period", 0, "train.period: Input should be greater than or equal to 1"),
        ("train.period", 2.5, "train.period"),
        ("train.epochs", 3, "give exactly one of iterations, epochs, rounds"),
        ("train.batches_per_epoch", 3, "give exactly one of batch_size, batches_per_epoch"),
        ("train.local_epochs", 3, "give exactly one of period, local_epochs"),
        ("train.decay_at", [0.7, 0.5], "ascending"),
        ("train.decay_at", [1.0], "in (0, 1)"),
        ("train.decay_factor", 0, "train.decay_factor"),
        ("train.augment", "flip", "train.augment: Input should be 'none', 'crop_flip'"),
        ("train.participation", {"rule": "random"}, "needs clients"),
        ("train.participation", {"rule": "full", "clients": 3}, "rule 'full' takes none"),
        ("seed", -1, "seed"),
        ("data.labels.rule", "halfs", "data.labels.rule"),
    ],
)
def test_values_outside_their_range_are_named(place: str, value: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        validated(RunSpec, changed(place, value), "config/papers/toy.yaml")
    message = str(caught.value)
    assert says in message and message.startswith("config/papers/toy.yaml: ") and "\n" not in message


def test_local_epochs_need_rounds() -> None:
    train = {"local_epochs": 2, "iterations": 10, "batch_size": 4}
    with pytest.raises(UserError, match="local_epochs goes with rounds"):
        validated(TrainSpec, train, "here")


def test_misspelt_keys_are_named_with_the_nearest() -> None:
    wrong = changed("train", BASE["train"] | {"batchsize": 4})
    with pytest.raises(
        UserError, match=r"^here: train\.batchsize: unknown key\. Did you mean 'batch_size'\?$"
    ):
        validated(RunSpec, wrong, "here")
    with pytest.raises(UserError, match=r"data\.imbalance\.imration: unknown key\. Did you mean 'imratio'\?"):
        validated(RunSpec, changed("data.imbalance", {"imration": 0.1}), "here")
    with pytest.raises(UserError, match=r"data\.dataset: Field required"):
        validated(RunSpec, changed("data", {"clients": 3}), "here")
    with pytest.raises(UserError, match=r"^here: the whole: "):
        validated(RunSpec, [1], "here")


def test_specifications_are_immutable() -> None:
    spec = RunSpec(**BASE)
    with pytest.raises(ValueError, match="frozen"):
        spec.seed = 3  # type: ignore[misc]
