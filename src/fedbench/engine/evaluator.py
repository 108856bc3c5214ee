"""Evaluates parameters on the untouched test set and, where there is one, the validation set."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.evaluate import binary_metrics, multiclass_metrics
from fedbench.net import Net

CHUNK = {"cpu": 100, "cuda": 2000}
"""Samples per forward pass: on a CPU what stays in its cache, a third faster than 500."""


class Evaluator:
    """Holds test and validation inputs on the device; metrics carry the prefix of their set."""

    def __init__(self, net: Net, arrays: Arrays, data: ClientData) -> None:
        self._net, self._data = net, data
        self._minority = data.spec.minority_classes
        held = arrays.validation
        self._sets = {"test": (arrays.x_test, arrays.y_test)}
        if len(held):
            self._sets["val"] = (arrays.x_train[held], arrays.y_train[held])
        self._inputs = {name: torch.from_numpy(x).to(data.device) for name, (x, _) in self._sets.items()}

    def metrics(
        self, x: Tensor, buffers: Tensor | None, suffix: str = "", sets: tuple[str, ...] = ()
    ) -> dict[str, float]:
        """Evaluate parameters ``x`` [>= d] with running statistics ``buffers``.

        Returns:
            Metrics such as ``test_auc`` or, with ``suffix`` "_h", ``test_auc_h``; of all sets or of ``sets`` alone.

        Raises:
            FloatingPointError: a score is not finite: the parameters are, but too large to compute with.
        """
        result: dict[str, float] = {}
        for name in sets or self._sets:
            scores = self._scores(x, buffers, self._inputs[name])
            labels = self._sets[name][1]
            if scores.shape[1] == 1:
                found = binary_metrics(scores[:, 0], labels)
            else:
                found = multiclass_metrics(scores, labels, self._minority)
            result |= {f"{name}_{metric}{suffix}": value for metric, value in found.items()}
        return result

    def _scores(self, x: Tensor, buffers: Tensor | None, inputs: Tensor) -> np.ndarray:
        w = x[None, : self._net.d]
        statistics = None if buffers is None else buffers[None]
        parts = []
        with torch.no_grad():
            for chunk in torch.split(inputs, CHUNK.get(inputs.device.type, 500)):
                prepared = self._data.prepare(chunk)
                parts.append(self._net.scores(w, prepared[None], statistics, train=False)[0])
        scores = torch.cat(parts)
        if not bool(torch.isfinite(scores).all()):
            raise FloatingPointError("scores became non-finite")
        return scores.cpu().numpy()
