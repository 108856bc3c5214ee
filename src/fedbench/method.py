"""What a file with a method imports: the contract, and the types its functions take and give.

from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
"""

from __future__ import annotations

from fedbench.contract.method import FederatedMethod, average
from fedbench.contract.problem import Batch, Problem, State, buffers_of
from fedbench.contract.task import ConditionalTask, LabelledTask, Task
from fedbench.ranges import Count, Memory, NotNegative, Positive, Share, Weight

__all__ = [
    "Batch", "ConditionalTask", "Count", "FederatedMethod", "LabelledTask", "Memory", "NotNegative", "Positive",
    "Problem", "Share", "State", "Task", "Weight", "average", "buffers_of",
]  # fmt: skip
