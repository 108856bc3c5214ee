"""What a file with a method imports: the contract, and the types its functions take and give.

from fedbench.method import Batch, FederatedMethod, Problem, State, buffers_of
"""

from __future__ import annotations

from fedbench.algorithms._base import FederatedMethod
from fedbench.engine.problem import Batch, Problem, State, buffers_of

__all__ = ["Batch", "FederatedMethod", "Problem", "State", "buffers_of"]
