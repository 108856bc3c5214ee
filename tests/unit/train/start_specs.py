"""A run, and one that starts from its model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedbench.spec import RunSpec, StartSpec
from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


def config() -> Config:
    return configuration.load_config(overrides={"checkpoint_seconds": 0})


def parent(**train: Any) -> RunSpec:
    run = Plan(config(), "toy").cells("table1")[0].runs[0]
    return run.model_copy(update={"train": run.train.model_copy(update={"keep_model": True, **train})})


def child(start: dict[str, Any] | None = None, **changes: Any) -> RunSpec:
    run = Plan(config(), "toy").cells("table1")[0].runs[0]
    start = start or {"run": parent()}
    return run.model_copy(update={"params": {"lr": 0.05}, "start": StartSpec(**start), **changes})


def curve(store: Store, key: str) -> list[str]:
    return store.curve(key).read_text().splitlines()


def model(store: Store, key: str) -> dict[str, Tensor]:
    return torch.load(store.path(key) / MODEL, weights_only=True)  # type: ignore[no-any-return]
