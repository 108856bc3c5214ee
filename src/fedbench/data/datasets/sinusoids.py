"""Sinusoids: points of sine curves, a class for each amplitude and phase (after Finn et al., ICML 2017). Generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.random import stream

PHASES = 5
"""Phases are 1 to 5 fifths of pi."""


@dataclass(frozen=True, kw_only=True)
class Sinusoids(Dataset):
    """Abscissae, uniform in [-5, 5]; the class is the curve, the group its amplitude, 1 to ``amplitudes``.

    The generator of fcsg's program gives client k the amplitude k + 1. The test part holds further points of the same
    curves; there it has amplitudes and phases between 1 and 5 at random (353356a, dataset.py 52-60).

    Attributes:
        amplitudes: how many.
        points: of each curve in the training part; the test part has a fifth of that.
    """

    amplitudes: int = 8
    points: int = 500

    def prepare(self, raw_dir: Path) -> Arrays:
        """Draw the points."""
        curves = np.arange(self.amplitudes * PHASES)
        rng = stream(0, "sinusoids")
        parts = []
        for points in (self.points, self.points // 5):
            y = np.repeat(curves, points)
            parts.append((rng.uniform(-5, 5, (len(y), 1)).astype(np.float32), y))
        (x_train, y_train), (x_test, y_test) = parts
        return Arrays(x_train, y_train, x_test, y_test, y_train // PHASES)


dataset = Sinusoids(
    name="sinusoids",
    title="Sinusoids",
    classes=tuple(
        f"{amplitude} sin(x + {phase}/5 pi)" for amplitude in range(1, 9) for phase in range(1, PHASES + 1)
    ),
    shape=(1,),
    licence="generated",
    source="uniform points; amplitudes and phases as in the program of fcsg",
)
