"""ILR: points for invariant logistic regression (fcsg), labelled by a linear teacher. Generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.random import stream


@dataclass(frozen=True, kw_only=True)
class Ilr(Dataset):
    """``a ~ N(0, I)`` of 10 dimensions, labelled by the sign of its product with a teacher drawn once.

    The noise is the task's. With 16 clients one pass over a client's share, 50 000 points, is as good as fresh draws;
    the clients' points are independent, where the published program gives all clients the same.

    Attributes:
        train: training points.
        test: clean test points.
    """

    train: int = 800_000
    test: int = 50_000

    def prepare(self, raw_dir: Path) -> Arrays:
        """Draw teacher and points."""
        rng = stream(0, "ilr")
        teacher = rng.normal(size=self.shape[0])
        parts = []
        for n in (self.train, self.test):
            x = rng.standard_normal((n, self.shape[0]), dtype=np.float32)
            parts.append((x, (x @ teacher > 0).astype(np.int64)))
        (x_train, y_train), (x_test, y_test) = parts
        return Arrays(x_train, y_train, x_test, y_test, notes=("the teacher has no intercept",))


dataset = Ilr(
    name="ilr",
    title="ILR",
    classes=("below", "above"),
    shape=(10,),
    licence="generated",
    source="normal points, a normal teacher (fcsg, invariant logistic regression)",
)
