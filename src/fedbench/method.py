"""What a file with a method imports: the contract, and the types its functions take and give.

from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
"""

from __future__ import annotations

from fedbench.contract.method import FederatedMethod
from fedbench.contract.problem import Batch, Problem, State, buffers_of
from fedbench.contract.task import ConditionalTask, LabelledTask, Task

__all__ = [
    "Batch", "ConditionalTask", "FederatedMethod", "LabelledTask", "Problem", "State", "Task", "buffers_of",
]  # fmt: skip
