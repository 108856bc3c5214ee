"""Evaluates parameters: on the test set, on the validation set where there is one, on what clients hold."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedbench.data.clients import Arrays, ClientData
from fedbench.engine.problem import State
from fedbench.evaluate import binary_metrics, multiclass_metrics
from fedbench.net import Net
from fedbench.objectives.cross_entropy import per_sample

CHUNK = {"cpu": 100, "cuda": 2000}
"""Samples per forward pass: on a CPU what stays in its cache, a third faster than 500."""
TRAIN_CHUNK = 1000
MOST_DEVICES = 16
"""More clients than these are not evaluated one by one."""


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

    def spread(self, clients: State) -> dict[str, float]:
        """Evaluate each client's model before the last averaging: what localscgdam prints as spread.

        Left out when many clients would make it expensive; the variance has divisor K, as in the paper's wording.
        """
        count = len(clients["x"])
        if count > MOST_DEVICES:
            return {}
        rows = []
        for index in range(count):
            local = {name: tensor[index] for name, tensor in clients.items()}
            rows.append(self.metrics(local["x"], local.get("buffers"), sets=("test",)))
        values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        means = {f"device_mean_{name}": float(value.mean()) for name, value in values.items()}
        return means | {f"device_var_{name}": float(value.var()) for name, value in values.items()}

    def client_losses(self, w: Tensor, buffers: Tensor | None) -> Tensor:
        """Return the mean cross-entropy of parameters ``w`` [>= d] on each client's training data, [N]."""
        data, statistics = self._data, None if buffers is None else buffers[None]
        losses = []
        with torch.no_grad():
            for at in range(0, len(data.labels), TRAIN_CHUNK):
                inputs = data.prepare(data.inputs[at : at + TRAIN_CHUNK])[None]
                scores = self._net.scores(w[None, : self._net.d], inputs, statistics, train=False)
                losses.append(per_sample(scores, data.labels[None, at : at + TRAIN_CHUNK])[0])
        sums = torch.split(torch.cat(losses).double(), data.sizes)
        return torch.stack([part.mean() for part in sums]).to(w.dtype)

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
