"""Trials whose scores are given, and changes of the toy paper."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy import PAPER, write_yaml

from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.schema import Config
from fedbench.train import workers
from fedbench.train.tune.tuning import tune_dataset

Scores = Mapping[float, float | tuple[float | None, ...] | None]
PATH = Path("config/tuned/toy/Digits.yaml")


def change(**parts: Any) -> None:
    """Rewrite the toy paper with other parts."""
    write_yaml(Path("config/papers/toy.yaml"), copy.deepcopy(PAPER) | parts)


class Fake:
    """Stands in for training, and keeps what it was asked for; a run without metrics diverges."""

    def __init__(self, metrics: Callable[[RunSpec], Mapping[str, float | None]]) -> None:
        self.metrics, self.asked = metrics, list[RunSpec]()

    def __call__(self, spec: RunSpec, config: Config, store: Store) -> Record:
        self.asked.append(spec)
        metrics = dict(self.metrics(spec))
        return Record(spec.key, {}, "finished" if metrics else "diverged", "", metrics, {}, {})

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs that it was asked for."""
        return [spec.seed for spec in self.asked]


def fake(monkeypatch: pytest.MonkeyPatch, scores: Scores) -> Fake:
    """Let trials score by their learning rate and, in a tuple, by their seed from 100 on; None diverges."""

    def metrics(spec: RunSpec) -> dict[str, float]:
        score = scores[spec.params["lr"]]
        if isinstance(score, tuple):
            score = score[spec.seed - 100]
        return {} if score is None else {"val_auc": score, "test_auc": 1 - score}

    return standing_in(monkeypatch, Fake(metrics))


def standing_in(monkeypatch: pytest.MonkeyPatch, trained: Fake) -> Fake:
    """Put it in the place of training."""
    monkeypatch.setattr(workers, "train_run", trained)
    return trained


def tune(*methods: str, said: list[str] | None = None, **given: Any) -> dict[str, Any]:
    """Tune methods of the toy paper on its digits; return what its file says afterwards."""
    config = configuration.load_config(overrides=given)
    lines = [] if said is None else said
    (path,) = tune_dataset(config, "toy", "Digits", methods or None, lines.append)
    content: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return content
