"""The key of a run: everything that changes numbers is in it; values that do not fit are refused, by name."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from fedbench import spec as specs
from fedbench.errors import UserError
from fedbench.spec import DataSpec, NoiseSpec, RunSpec, Spec, StartSpec, TaskSpec, TrainSpec, validated
from fedbench.study.claims import Comparison
from fedbench.study.schema import Config, Paper

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


def changed(place: str, value: Any, base: dict[str, Any] = BASE) -> dict[str, Any]:
    head, _, rest = place.partition(".")
    return base | {head: changed(rest, value, base[head]) if rest else value}


CHANGES: dict[str, dict[str, Any]] = {
    "data": {
        "dataset": "mnist", "clients": 5, "content": "0123456789abcdef", "validation": 0.2, "validation_of": "all",
        "draw": 3, "sources": ["mnist"], "tests": "all",
    },
    "data.labels": {"rule": "original", "positive_half": "second", "flip": 0.2},
    "data.imbalance": {"rule": "minority", "imratio": 0.2, "rho": 3.0, "minority": [2], "share": 0.5},
    "data.partition": {
        "rule": "mix", "alpha": 0.6, "delta": 2.0, "options": {"share": 0.5}, "paired": True, "by": "labels",
        "least": 4, "of": 8, "remainder": "random",
    },
    "network": {"name": "cnn", "options.hidden": [5], "weights": "xavier"},
    "params": {"lr": 0.2},
    "train": {
        "iterations": 101, "period": 8, "batch_size": 16, "decay_at": [0.6], "decay_factor": 0.2, "weight_decay": 0.2,
        "clip_norm": 2.0, "clip_value": 2.0, "augment": "crop_flip", "minority_classes": [1], "evaluations": 10,
        "positives": 2, "precision": "bf16", "reference": "local", "weights": "samples", "prior": "client",
        "select": "val_auc", "keep_model": True, "participation": {"rule": "full"},
    },
    "train.participation": {"clients": 3, "groups": 2},
    "train.normalize": {"mean": [0.2], "std": [0.3]},
}  # fmt: skip
"""Another value of each field than the tests begin with."""
PLACES: dict[str, Any] = {
    "method": "fedprox", "seed": 1, "numerics": specs.NUMERICS + 1,
    **{f"{part}.{name}": value for part, values in CHANGES.items() for name, value in values.items()},
}  # fmt: skip
NO_DECAY = {"decay_at": []}
ALTERNATIVES: dict[str, list[dict[str, Any]]] = {
    "train": [
        NO_DECAY,
        NO_DECAY | {"iterations": None, "cycles": 5, "participation": {"rule": "random", "clients": 2, "groups": 2}},
        NO_DECAY | {"iterations": None, "cycles": 5, "participation": {"rule": "cyclic", "clients": 2, "groups": 2}},
        NO_DECAY | {"stage_every": 20, "stage_factor": 0.1},
        NO_DECAY | {"stage_every": 40, "stage_factor": 0.1},
        NO_DECAY | {"stage_every": 20, "stage_factor": 0.3},
        *(NO_DECAY | {"stages": {"first": 2, "factor": 0.5} | other} for other in (
            {}, {"first": 3}, {"scale": 2}, {"factor": 0.25},
        )),
        *({"noise": {"std": 0.1, "shift": 0.1} | other} for other in ({}, {"std": 0.2}, {"shift": 0.2}, {"centre": 1})),
    ],
    "start": [
        {"sha256": "0" * 64},
        {"sha256": "1" * 64},
        {"sha256": "0" * 64, "drop_head": True},
        {"run": BASE | {"train": BASE["train"] | {"keep_model": True}}},
        {"run": BASE | {"train": BASE["train"] | {"keep_model": True}, "seed": 1}},
    ],
    "data": [{"validation": "own"}, *({"labels": {"rule": "named", "positive": [k]}} for k in (1, 2))],
    "task": [{"name": "a"}, {"name": "b"}, {"name": "a", "options": {"m": 1}}],
}  # fmt: skip
"""Fields that go only with others, or instead of them."""


def fields_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    collected = set[str]()
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        nested = inner and inner[0] is not RunSpec  # what a run starts from is described like the run
        collected |= fields_of(inner[0], f"{prefix}{name}.") if nested else {prefix + name}
    return collected


@pytest.mark.parametrize("place", PLACES)
def test_every_field_changes_the_key(place: str) -> None:
    first, other = RunSpec(**BASE), RunSpec(**changed(place, PLACES[place]))
    assert first.key != other.key and len(first.key) == 16
    assert other.key == specs.digest(other.model_dump(mode="json")), "put together from its parts"
    moves_data = place.startswith("data.") or place == "seed"
    keys = [spec.data.partition_key(spec.seed) for spec in (first, other)]
    assert (keys[0] != keys[1]) == moves_data  # methods and schedules share their partition


def test_no_field_was_forgotten_above() -> None:
    nested = {"train.noise": NoiseSpec, "start": StartSpec, "task": TaskSpec}
    alternatives = {f"{part}.{name}" for part, kind in nested.items() for name in kind.model_fields}
    for part, pieces in (
        ("train", ALTERNATIVES["train"]),
        ("train.stages", [{"first": 0, "scale": 0, "factor": 0}]),
    ):
        alternatives |= {f"{part}.{name}" for piece in pieces for name in piece}
    alternatives |= {"data.labels.positive", *(f"train.{name}" for name in LENGTHS)}
    tried = {*PLACES, "train.participation.rule"} | alternatives
    assert {
        place for place in fields_of(RunSpec) if not any(f"{name}.".startswith(f"{place}.") for name in tried)
    } == set()


@pytest.mark.parametrize("place", ALTERNATIVES)
def test_fields_that_go_with_others_change_the_key(place: str) -> None:
    pieces = ALTERNATIVES[place]
    runs = [BASE | {place: (BASE[place] | piece if place in BASE else piece)} for piece in pieces]
    assert len({RunSpec(**run).key for run in runs} | {RunSpec(**BASE).key}) == len(pieces) + 1


def test_a_late_field_at_its_default_is_no_part_of_the_key() -> None:
    """Whatever its default is: written out or not, the key is that of before the field came."""
    late = {
        "cycles": None, "stage_every": None, "stage_factor": None, "stages": None, "positives": None,
        "prior": "pooled", "precision": "float32", "select": None, "keep_model": False, "clip_value": None,
        "noise": None, "weights": "equal", "reference": None,
    }  # fmt: skip
    assert set(late) == set(TrainSpec.added_later)
    written = BASE | {
        "train": BASE["train"] | late | {"participation": {"rule": "random", "clients": 2, "groups": None}},
        "data": BASE["data"] | {"draw": None, "content": None, "validation_of": "kept"},
        "start": None,
        "task": None,
    }
    assert RunSpec(**written).key == RunSpec(**BASE).key
    assert not {*late, "groups", "draw", "content", "validation_of", "start", "task"} & set(
        str(RunSpec(**written).model_dump())
    )


def test_the_path_of_a_weights_file_is_no_part_of_the_key() -> None:
    starts = [{"weights": path, "sha256": "0" * 64} for path in ("a.pt", "b.pt")]
    runs = [RunSpec(**BASE, start=start) for start in starts]
    assert runs[0].key == runs[1].key and runs[0].start != runs[1].start
    assert RunSpec(**runs[0].model_dump(mode="json")).key == runs[0].key  # as the store keeps it


def test_a_seed_holds_for_what_a_run_starts_from() -> None:
    first = BASE | {"train": BASE["train"] | {"keep_model": True}}
    other = RunSpec(**BASE, start={"run": first}).seeded(7)
    assert other.start and other.start.run and other.seed == other.start.run.seed == 7
    assert other.key == RunSpec(**BASE | {"seed": 7}, start={"run": first | {"seed": 7}}).key


def test_a_copy_has_a_key_of_its_own() -> None:
    run = RunSpec(**BASE)
    key = run.key
    other = run.model_copy(update={"seed": run.seed + 1})
    assert other.key != key and run.seeded(run.seed).key == key
    assert other.seeded(run.seed) == run and "key" not in run.model_dump()
    assert run.data.partition_key(0) != run.data.model_copy(update={"clients": 5}).partition_key(0)


def test_a_draw_of_its_own_gives_all_seeds_one_partition() -> None:
    spec = RunSpec(**changed("data.draw", 3)).data
    assert spec.partition_key(0) == spec.partition_key(1) and spec.seed_of(1) == 3
    assert spec.partition_key(0) != RunSpec(**changed("data.draw", 4)).data.partition_key(0)


LENGTHS = ("epochs", "rounds", "local_epochs", "batches_per_epoch")


def test_ways_to_say_how_long_differ() -> None:
    ways = [{name: 100, "period": 4, "batch_size": 8} for name in ("iterations", "epochs", "rounds")]
    ways += [{"rounds": 100, "local_epochs": 4, name: 8} for name in ("batch_size", "batches_per_epoch")]
    assert len({RunSpec(**BASE | {"train": way}).key for way in ways}) == 5


def test_the_key_is_the_same_on_every_machine() -> None:
    """A literal: a change of the rule of keys orphans every finished run, and must be meant."""
    assert RunSpec(**(BASE | {"numerics": 1})).key == "f9ec885c4b3fceb7"
    assert specs.digest({"b": [1, 0.5], "a": None}) == specs.digest({"a": None, "b": [1, 0.5]})


TRAIN: dict[str, Any] = BASE["train"]
POOLED = TRAIN | {"reference": "pooled"}


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("train.participation.clients", 99, "participation.clients is 99, but there are only"),
        *(("data.imbalance", {"rule": f"drop_positives{kind}"}, "needs imratio") for kind in ("", "_per_class")),
        ("data.imbalance", {"rule": "minority", "rho": 2}, "needs rho >= 1 and the list of minority classes"),
        ("data.validation", 1, "data.validation: Input should be less than 1 or 'own'"),
        ("train.epochs", 3, "give exactly one of iterations, epochs, rounds"),
        ("train.batches_per_epoch", 3, "give exactly one of batch_size, batches_per_epoch"),
        ("train.local_epochs", 3, "give exactly one of period, local_epochs"),
        ("train.decay_at", [0.7, 0.5], "ascending"),
        ("train.decay_at", [1.0], "in (0, 1)"),
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
        ({"method": "A", "than": None}, r"than: Input .* valid dictionary or a valid list \(got None\)"),
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
