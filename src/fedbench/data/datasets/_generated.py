"""Points that are drawn, not measured: for problems whose solution is known, and fcsg's two synthetic tasks."""

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
        rng = stream(0, "ilr")
        teacher = rng.normal(size=self.shape[0])
        parts = []
        for n in (self.train, self.test):
            x = rng.standard_normal((n, self.shape[0]), dtype=np.float32)
            parts.append((x, (x @ teacher > 0).astype(np.int64)))
        (x_train, y_train), (x_test, y_test) = parts
        return Arrays(x_train, y_train, x_test, y_test, notes=("the teacher has no intercept",))


@dataclass(frozen=True, kw_only=True)
class Shifted(Dataset):
    """Points ``N(e_k, I)`` and ``N(-e_{k+1}, I)`` of 5 dimensions: the positives and negatives of client k.

    Each client alone would turn the separating line elsewhere, and their shares of positives differ too, from 0.2 to
    0.8. The square surrogate of the AUC with linear scores is quadratic on them and, as it does not see the intercept,
    Polyak-Lojasiewicz without being strongly convex. The test part is the training part: what is measured there is the
    objective that is minimised.

    Attributes:
        clients: how many, each a group.
        points: of each.
    """

    clients: int = 4
    points: int = 250

    def prepare(self, raw_dir: Path) -> Arrays:
        rng = stream(0, "shifted")
        inputs, labels = [], []
        axes = np.eye(self.shape[0])
        for client in range(self.clients):
            positives = round(self.points * (0.2 + 0.6 * client / (self.clients - 1)))
            y = np.repeat([1, 0], [positives, self.points - positives])
            noise = rng.normal(size=(self.points, self.shape[0]))
            inputs.append(noise + np.where(y[:, None] == 1, axes[client], -axes[client + 1]))
            labels.append(y)
        x, y = np.concatenate(inputs).astype(np.float32), np.concatenate(labels).astype(np.int64)
        groups = np.repeat(np.arange(self.clients), self.points)
        return Arrays(x, y, x, y, groups, notes=("the test part is the training part",))


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

    classes: tuple[str, ...] = tuple(
        f"{amplitude} sin(x + {phase}/5 pi)" for amplitude in range(1, 9) for phase in range(1, PHASES + 1)
    )
    amplitudes: int = 8
    points: int = 500

    def prepare(self, raw_dir: Path) -> Arrays:
        curves = np.arange(self.amplitudes * PHASES)
        rng = stream(0, "sinusoids")
        parts = []
        for points in (self.points, self.points // 5):
            y = np.repeat(curves, points)
            parts.append((rng.uniform(-5, 5, (len(y), 1)).astype(np.float32), y))
        (x_train, y_train), (x_test, y_test) = parts
        return Arrays(x_train, y_train, x_test, y_test, y_train // PHASES)
