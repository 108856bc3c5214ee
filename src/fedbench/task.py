"""What a file with a task imports: the contract, and the types its functions take and give.

from fedbench.task import Batch, LabelledTask, Leaf, Model, Net, Part
"""

from __future__ import annotations

from fedbench.contract.task import Conditional, ConditionalTask, LabelledTask, Model, Part, Rounds, Task
from fedbench.data.batch import Batch
from fedbench.data.clients import Arrays, ClientData
from fedbench.errors import UserError
from fedbench.net import Leaf, Net
from fedbench.net import build as build_network
from fedbench.objectives.mean import batch_mean
from fedbench.streams import stream

__all__ = [
    "Arrays", "Batch", "ClientData", "Conditional", "ConditionalTask", "LabelledTask", "Leaf", "Model", "Net", "Part",
    "Rounds", "Task", "UserError", "batch_mean", "build_network", "stream",
]  # fmt: skip
