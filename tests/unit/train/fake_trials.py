"""Trials whose scores are given, and changes of the toy paper."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from toy import PAPER, write_yaml

from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.schema import Config


def change(**parts: Any) -> None:
    """Rewrite the toy paper with other parts."""
    write_yaml(Path("config/papers/toy.yaml"), copy.deepcopy(PAPER) | parts)


def quiet(line: str) -> None:
    pass


def fake(scores: dict[Any, float | None]) -> Any:
    """Stand in for training: the validation score of a trial by its learning rate; None diverges."""

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        value = scores[spec.params["lr"]]
        status = "finished" if value is not None else "diverged"
        metrics = {"val_auc": value, "test_auc": 1 - (value or 0)} if value is not None else {}
        return Record(spec.key, {}, status, "", metrics, {}, {})

    return train


def fake_seeds(scores: dict[Any, tuple[float | None, ...]]) -> Any:
    """Stand in for training: validation scores by the learning rate and, from 100 on, the seed."""

    def train(spec: RunSpec, config: Config, store: Store) -> Record:
        score = scores[spec.params["lr"]][spec.seed - 100]
        record: Record = fake({spec.params["lr"]: score})(spec, config, store)
        return record

    return train


def chosen(method: str) -> dict[str, Any]:
    content = yaml.safe_load(Path("config/tuned/toy/Digits.yaml").read_text())
    collected: dict[str, Any] = content["chosen"][method]
    return collected
