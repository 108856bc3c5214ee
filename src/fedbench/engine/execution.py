"""How a run is executed: what changes its speed, its memory and what is saved on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fedbench.data.inputs import Where
from fedbench.engine.outcome import Progress

CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a run is executed. ``chunk`` and ``compiling`` change the rounding of results, the others change nothing.

    Where a row of the curve is selected, other rounding can select another one, .001 of AUC apart.

    Attributes:
        chunk: clients stacked in one call, None for all, or what pays (``loop.AUTO``).
        compiling: compile the local steps; with ``graph`` they are CUDA graphs instead (:mod:`fedbench.engine.replay`).
        inputs: where inputs are kept (:mod:`fedbench.data.inputs`).
        checkpoint: where the checkpoint lives while the run is unfinished, None for no checkpoints.
        checkpoint_seconds: seconds between checkpoints; 0 writes one each round.
        on_round: called after each round.
        keep: leave the reported weights and the scores of every test and validation sample, too.
        stop: asked after each round; when it says so, the run saves a checkpoint and raises :class:`Stopped`.
    """

    chunk: int | None = 1
    compiling: bool | Literal["graph"] = False
    inputs: Where = "auto"
    checkpoint: Path | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    on_round: Callable[[Progress], None] = lambda progress: None
    keep: bool = False
    stop: Callable[[], bool] = lambda: False
