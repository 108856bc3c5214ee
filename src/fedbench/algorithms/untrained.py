"""A control that learns nothing: local steps leave the initial model unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """Local steps change nothing. With the task ``random_scores`` the metrics are those of guessing."""

    task: ClassVar[type[Task]] = Task

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Return the state unchanged; no loss is computed, and 0 is recorded."""
        return state | {"loss": state["x"].new_zeros(len(state["x"]))}
