"""The control that learns nothing: local steps leave the model as it was initialised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedbench.method import FederatedMethod
from fedbench.problem import Batch, Problem, State
from fedbench.task import Task


@dataclass(frozen=True)
class Method(FederatedMethod):
    """No step moves anything. With the task ``random_scores`` it is what guessing gives."""

    task: ClassVar[type[Task]] = Task

    def step(self, problem: Problem, state: State, batches: list[Batch], decay: float) -> State:
        """Stand still; no loss is computed, and 0 is recorded."""
        return state | {"loss": state["x"].new_zeros(len(state["x"]))}
