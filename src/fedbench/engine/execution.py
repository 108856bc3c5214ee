"""How a run is executed: its speed, its memory, and the files that it saves on the way."""

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
    """How a run is executed. ``chunk`` and ``compiling`` change the rounding of results, other fields change no result.

    If a run reports a selected row of its curve, other rounding can select another row, whose AUC differs by .001.

    Attributes:
        chunk: clients stacked in one call, None for all, or ``loop.AUTO`` for the fastest number.
        compiling: compile the local steps; with ``graph`` they are CUDA graphs instead (:mod:`fedbench.engine.replay`).
        inputs: where inputs are kept (:mod:`fedbench.data.inputs`).
        checkpoint: file of the checkpoint while the run is unfinished, None for no checkpoints.
        checkpoint_seconds: seconds between checkpoints; 0 writes one each round.
        on_round: called after each round.
        keep: return the reported weights and the scores of every test and validation sample, too.
        stop: called after each round; if true, the run saves a checkpoint and raises :class:`Stopped`.
    """

    chunk: int | None = 1
    compiling: bool | Literal["graph"] = False
    inputs: Where = "auto"
    checkpoint: Path | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    on_round: Callable[[Progress], None] = lambda progress: None
    keep: bool = False
    stop: Callable[[], bool] = lambda: False
