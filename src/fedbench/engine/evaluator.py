"""Evaluates parameters by the task's metrics: on the test part, at each site, and on the validation part if any."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from fedbench import metric_table
from fedbench.data.clients import Arrays, ClientData
from fedbench.data.inputs import chosen, stored
from fedbench.data.round_batches import AHEAD
from fedbench.net import Net
from fedbench.objectives.cross_entropy import per_sample
from fedbench.objectives.metrics import auc
from fedbench.problem import State
from fedbench.task import Model, Part, Task

TRAIN_CHUNK = 1000
"""Training samples that a CPU scores in one call; a GPU scores as many as it gathers for steps (``AHEAD``)."""
MOST_DEVICES = 16
"""More clients than these are not evaluated one by one."""


class Evaluator:
    """Holds test and validation inputs on the device of the training inputs; metrics have the prefix of their part."""

    def __init__(self, task: Task, net: Net, arrays: Arrays, data: ClientData) -> None:
        self._task, self._net, self._data = task, net, data
        held = arrays.validation
        parts = {"test": (arrays.x_test, np.arange(len(arrays.y_test)), arrays.y_test)}
        if len(held):
            parts["val"] = (arrays.x_train, held, arrays.y_train[held])
        self._parts = {
            name: Part(name, stored(x, used, data.device, data.where), y)
            for name, (x, used, y) in parts.items()
        }
        self._of_sites = dict[str, Part]()
        if arrays.site_test is not None:
            test = self._parts["test"]
            for number, site in enumerate(arrays.sites):
                at = np.flatnonzero(arrays.site_test == number)
                if len(at):
                    self._of_sites[site] = Part("test", chosen(test.inputs, at), test.labels[at])

    def metrics(
        self, x: Tensor, buffers: Tensor | None, suffix: str = "", parts: tuple[str, ...] = ()
    ) -> dict[str, float]:
        """Evaluate parameters ``x`` [>= d] with running statistics ``buffers``.

        Returns:
            Metrics such as ``test_auc`` or, with ``suffix`` "_h", ``test_auc_h``; on all parts or on ``parts`` alone.
            Where test samples have sites, also ``test_auc@SITE`` of each, and over the sites where it is defined
            ``worst_site_test_auc`` and its standard deviation ``site_std_test_auc`` (divisor the number of sites;
            one site has none).

        Raises:
            FloatingPointError: a score is not finite, as the parameters are finite but too large.
        """
        model = Model(self._net, x[: self._net.d], buffers, self._data)
        result: dict[str, float] = {}
        for name in parts or self._parts:
            measured = self._task.measure(model, self._parts[name])
            result |= {f"{name}_{metric}{suffix}": value for metric, value in measured.items()}
        return result if parts else result | self._by_site(model, suffix)

    def predictions(
        self, x: Tensor, buffers: Tensor | None
    ) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
        """Return labels [n] and scores [n, C] of each part, None where the task has no scores."""
        model = Model(self._net, x[: self._net.d], buffers, self._data)
        scores = {name: self._task.scores(model, part) for name, part in self._parts.items()}
        return {
            name: (self._parts[name].labels, of_part)
            for name, of_part in scores.items()
            if of_part is not None
        } or None

    def _by_site(self, model: Model, suffix: str) -> dict[str, float]:
        rows = {site: self._task.measure(model, part) for site, part in self._of_sites.items()}
        result: dict[str, float] = {}
        for metric in next(iter(rows.values()), {}):
            values = {f"test_{metric}{suffix}@{site}": row[metric] for site, row in rows.items()}
            result |= values | over_sites(values)
        return result

    def spread(self, clients: State) -> dict[str, float]:
        """Evaluate each client's model before the last averaging: localscgdam publishes their spread.

        Left out when many clients would make it expensive or the task does not want it. The variance has divisor K, as
        in the paper's wording.
        """
        count = len(clients["x"])
        if not self._task.spread or count > MOST_DEVICES:
            return {}
        x, buffers = clients["x"], clients.get("buffers")
        rows = [
            self.metrics(x[client], None if buffers is None else buffers[client], parts=("test",))
            for client in range(count)
        ]
        values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        means = {f"device_mean_{name}": float(value.mean()) for name, value in values.items()}
        return means | {f"device_var_{name}": float(value.var()) for name, value in values.items()}

    def on_training_data(self, x: Tensor, buffers: Tensor | None) -> dict[str, float]:
        """Return ``train_auc`` over all clients' samples of two classes; nothing where the task has no AUC."""
        data = self._data
        if data.n_classes != 2 or "auc" not in self._task.measured(data.n_classes, data.spec):
            return {}
        with contextlib.suppress(FloatingPointError):  # the run has ended: scores of its test part are finite
            scores = Model(self._net, x[: self._net.d], buffers, data).outputs(data.inputs)[:, 0]
            return {"train_auc": auc(scores.cpu().numpy(), data.labels.cpu().numpy())}
        return {}

    def client_losses(self, w: Tensor, buffers: Tensor | None, time: int | None = None) -> Tensor:
        """Return the mean cross-entropy of parameters ``w`` [>= d] on each client's training data, [N].

        With a ``time`` the data are augmented as in training, differently at each time.
        """
        data, statistics = self._data, None if buffers is None else buffers[None]
        losses, chunk = [], TRAIN_CHUNK
        if data.device.type == "cuda":  # 60 calls a round would cost CLIMB a quarter of its time there
            chunk = max(1, AHEAD["cuda"] // math.prod(data.sample))
        with torch.no_grad():
            for batch in data.passes(chunk, time):
                scores = self._net.scores(w[None, : self._net.d], batch.inputs, statistics, train=False)
                losses.append(per_sample(scores, batch.labels)[0])
        sums = torch.split(torch.cat(losses).double(), data.sizes)
        return torch.stack([part.mean() for part in sums]).to(w.dtype)


def over_sites(by_site: Mapping[str, float]) -> dict[str, float]:
    """Return the worst and the spread of metrics of single sites, ``test_auc@SITE``, over those where it is defined."""
    result: dict[str, float] = {}
    for name in dict.fromkeys(name.partition("@")[0] for name in by_site):
        values = [value for key, value in by_site.items() if key.partition("@")[0] == name]
        defined = np.array([value for value in values if np.isfinite(value)])
        worst = defined.min if metric_table.sign(name) > 0 else defined.max
        result[f"worst_site_{name}"] = float(worst()) if len(defined) else float("nan")
        result[f"site_std_{name}"] = float(defined.std()) if len(defined) > 1 else float("nan")
    return result
