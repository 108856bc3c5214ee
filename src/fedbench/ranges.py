"""Where hyper-parameters may lie, declared beside the field: ``lr: Positive``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1)]
"""Of the newest gradient in a running mean."""
Memory = Annotated[float, Field(ge=0, lt=1)]
"""Share of the old that a running mean keeps: at 1 nothing is ever forgotten, and a step has no bound."""
Amplification = Annotated[float, Field(ge=1)]
Count = Annotated[int, Field(ge=1)]
NumberFrom0 = Annotated[int, Field(ge=0)]
