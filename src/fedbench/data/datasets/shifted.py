"""Shifted: four clients whose classes lie apart in directions of their own, for a saddle that is known. Generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.random import stream


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
        """Draw the points, client after client."""
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


dataset = Shifted(
    name="shifted",
    title="Shifted points",
    classes=("negative", "positive"),
    shape=(5,),
    licence="generated",
    source="normal points around a centre for each client and class",
)
