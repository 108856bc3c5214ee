"""A run as configured, and changes of it."""

from __future__ import annotations

from typing import Any

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
