"""References for a federated run: each client alone on its own data, or all data on one client."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fedbench import tasks
from fedbench.data.clients import Arrays, ClientData
from fedbench.engine import checkpoint
from fedbench.engine.evaluator import over_sites
from fedbench.engine.execution import Execution, Outcome, Progress
from fedbench.engine.schedule import Schedule
from fedbench.engine.simulate import DEFAULT, Simulation
from fedbench.engine.weights import Weights
from fedbench.errors import UserError
from fedbench.spec import ParticipationSpec, RunSpec
from fedbench.task import Task

SUMMED, SENT = ("samples", "samples_forward"), ("floats_up", "floats_down", "floats_buffers")
NO_MODEL = "no AUC: one class in training"
"""What is said of a client of two-class data that has nothing to tell apart; tables print it."""


def simulation_of(
    spec: RunSpec,
    arrays: Arrays,
    device: torch.device,
    how: Execution = DEFAULT,
    start: Weights | None = None,
) -> Simulation | Alone:
    """Return the simulation of a run: federated, or the reference that ``train.reference`` names."""
    if spec.train.reference == "local":
        return Alone(spec, arrays, device, how, start)
    if spec.train.reference == "pooled":
        return Pooled(*pooled(spec, arrays), device, how, start)
    return Simulation(spec, arrays, device, how, start)


def pooled(spec: RunSpec, arrays: Arrays) -> tuple[RunSpec, Arrays]:
    """Return the run of one client with the data of all clients, with the same number of steps.

    A step draws as many samples as a step of all participating clients together, small clients with their short
    batches included: both runs see the same number of samples.
    """
    check_reference(spec)
    data = _counted(spec, arrays)
    chosen, clients = spec.train.participation.clients, len(data.sizes)
    share = (chosen or clients) / clients
    changes: dict[str, Any] = {"batches_per_epoch": None}
    changes["batch_size"] = max(1, round(share * sum(map(data.batch_size, range(clients)))))
    if data.pairs is not None and not data.pairs.alike:
        positives = share * sum(data.pairs.counts(client)[0] for client in range(clients))
        changes["positives"] = max(1, round(positives))
    return _with_one_client(spec, data, changes), dataclasses.replace(
        arrays, clients=[np.concatenate(arrays.clients)]
    )


def check_reference(spec: RunSpec) -> None:
    """Refuse a reference that is not defined for the task of a run.

    Raises:
        UserError: a task draws its batches itself, so that a batch of all clients has no size; or a metric is over the
            clients, of which a reference has one.
    """
    task, name = tasks.make_task(spec.task), tasks.DEFAULT if spec.task is None else spec.task.name
    if over := {"worst_client_accuracy", "client_accuracy_std"} & {*task.measured(2, spec.train)}:
        raise UserError(f"train.reference: {min(over)} is over the clients, of which a reference has one")
    if spec.train.reference == "pooled" and type(task).rounds is not Task.rounds:
        raise UserError(f"train.reference pooled: task {name!r} draws batches of its own; take local alone")


def _counted(spec: RunSpec, arrays: Arrays) -> ClientData:
    """Return the clients' data without copying any: only sizes of batches are asked of it."""
    return ClientData(arrays, spec.train, spec.seed, torch.device("cpu"), "host")


def _with_one_client(spec: RunSpec, data: ClientData, changes: Mapping[str, Any]) -> RunSpec:
    """Return a run of a single client that is as long, falls at the same steps and is evaluated as often."""
    train, groups = spec.train, spec.train.participation.groups
    one_of_one = ParticipationSpec(rule="random", clients=1, groups=groups) if groups else ParticipationSpec()
    changed: dict[str, Any] = {"reference": None, "weights": "equal", "participation": one_of_one, **changes}
    if train.epochs is not None:  # of the client with most, which may not be there
        changed |= {"epochs": None, "rounds": Schedule(train, data).rounds}
    return spec.model_copy(
        update={
            "train": train.model_copy(update=changed),
            "data": spec.data.model_copy(update={"clients": 1}),
        }
    )


class Alone:
    """A run that trains each client by itself: as the only client of its method, in as many steps, never averaged.

    A metric is the mean over the clients' own models on the same samples; ``test_auc@SITE`` is that of the clients that
    train on samples of the site, so a hospital's own where hospitals are clients. Nothing is sent. Of two classes, a
    client whose samples are of one has no model: it is in no mean, and its site has no number. Predictions, where they
    are kept, are of each sample by the model of its own site, NaN where that has none or several; no model is kept.

    Attributes:
        spec, device: as in :class:`Simulation`.
        where: where inputs are.
        compiled: whether steps run compiled.
    """

    def __init__(
        self,
        spec: RunSpec,
        arrays: Arrays,
        device: torch.device,
        how: Execution = DEFAULT,
        start: Weights | None = None,
    ) -> None:
        self.spec, self.device, self._how = spec, device, how
        self._arrays, self._start = arrays, start
        self._run_of_one = _with_one_client(spec, _counted(spec, arrays), {})
        self._outcomes: dict[int, Outcome] = {}
        self._scores: dict[str, torch.Tensor] | None = {} if how.keep else None
        self.where, self.compiled = str(how.inputs), False

    @property
    def _learners(self) -> list[int]:
        """The clients that have something to learn."""
        several = self._arrays.n_classes > 2
        labels = (self._arrays.y_train[positions] for positions in self._arrays.clients)
        return [client for client, y in enumerate(labels) if several or len(np.unique(y)) > 1]

    def run(self) -> Outcome:
        """Train one client after the other, from the checkpoint where there is one."""
        kept, learners, begun = self._how.checkpoint, self._learners, time.perf_counter()
        if kept is not None and (saved := checkpoint.load(kept, self.spec.key, self.device, {"clients": {}})):
            self._outcomes = {client: Outcome(**given) for client, given in saved["clients"].items()}
            self._scores = saved.get("scores") and {part: of.cpu() for part, of in saved["scores"].items()}
        before = len(self._outcomes)
        for place, client in enumerate(learners):
            if client not in self._outcomes:
                simulation = self._simulation(client, place, before, begun)
                self.where, self.compiled = simulation.where, simulation.compiled
                self._outcomes[client] = self._noted(client, simulation.run())
                given = {k: dataclasses.asdict(outcome) for k, outcome in self._outcomes.items()}
                with contextlib.suppress(OSError):  # it only insures the work
                    if kept is not None:
                        checkpoint.save(kept, self.spec.key, {"clients": given, "scores": self._scores})
        return self._together()

    def _simulation(self, client: int, place: int, before: int, begun: float) -> Simulation:
        arrays = dataclasses.replace(self._arrays, clients=[self._arrays.clients[client]])
        how, count, kept = self._how, len(self._learners), self._how.checkpoint

        def on_round(at: Progress) -> None:
            round_, seconds = place * at.rounds + at.round, time.perf_counter() - begun
            rounds, begun_at = count * at.rounds, before * at.rounds
            how.on_round(
                dataclasses.replace(at, round=round_, rounds=rounds, begun_at=begun_at, seconds=seconds)
            )

        of_client = None if kept is None else kept.with_name(f"client{client}.pt")
        changed = dataclasses.replace(how, checkpoint=of_client, on_round=on_round)
        return Simulation(self._run_of_one, arrays, self.device, changed, self._start)

    def _noted(self, client: int, outcome: Outcome) -> Outcome:
        """Take the scores of the samples of a client's own sites; return its outcome without model and predictions."""
        alone = [at for at, site in enumerate(self._arrays.sites) if self._owners(site) == [client]]
        # joined datasets have no sites of a test part that is one dataset's alone
        if self._scores is not None and alone and self._arrays.site_test is not None:
            for part, (_, scores) in (outcome.predictions or {}).items():
                at = torch.from_numpy(np.isin(self._samples(part)[1], alone))
                held = self._scores.setdefault(part, torch.full(scores.shape, torch.nan))
                held[at] = torch.from_numpy(scores)[at]
        return dataclasses.replace(outcome, model=None, predictions=None)

    def _samples(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the label [n] of each sample of a part, and its site as an index."""
        arrays = self._arrays
        assert arrays.site_test is not None and arrays.site_train is not None
        if part == "test":
            return arrays.y_test, arrays.site_test
        return arrays.y_train[arrays.validation], arrays.site_train[arrays.validation]

    def _together(self) -> Outcome:
        """Make one outcome of those of the clients."""
        outcomes = [*self._outcomes.values()]
        seconds = sum(part.seconds for part in outcomes)
        if broken := [f"client {k}: {part.reason}" for k, part in self._outcomes.items() if part.reason]:
            return Outcome("diverged", "; ".join(broken), [], [], {}, seconds)
        if not outcomes:
            row = self._nothing()
            return Outcome(
                "finished", "", [row], [], row, 0.0, undefined=_said(row, ("", *self._arrays.sites))
            )
        curve = [self._mean(rows) for rows in zip(*(part.curve for part in outcomes), strict=True)]
        metrics = self._mean([part.metrics for part in outcomes])
        evaluations, times = (
            [sum(parts) for parts in zip(*(getattr(part, name) for part in outcomes), strict=True)]
            for name in ("evaluation_seconds", "curve_seconds")
        )
        known = {site: self._owners(site) for site in self._arrays.sites}
        silent = [site for site, owners in known.items() if owners and not {*owners} & self._outcomes.keys()]
        undefined = _said(metrics, silent)
        held = (self._scores or {}).items()
        predictions = {part: (self._samples(part)[0], scores.numpy()) for part, scores in held} or None
        return Outcome(
            "finished", "", curve, [], metrics, seconds, evaluations, times, None, undefined, predictions
        )

    def _nothing(self) -> dict[str, float]:
        """Return the row of a run in which no client has a model."""
        names = tasks.make_task(self.spec.task).measured(self._arrays.n_classes, self.spec.train)
        sites = ["", *(f"@{site}" for site in self._arrays.sites)]
        row = dict.fromkeys(("iteration", "round", *SUMMED, *SENT), 0.0)
        return row | {f"test_{name}{site}": float("nan") for name in names for site in sites}

    def _owners(self, site: str) -> list[int]:
        """Return which clients train on samples of a site."""
        arrays = self._arrays
        if arrays.site_train is None:
            return []
        number = arrays.sites.index(site)
        return [k for k, at in enumerate(arrays.clients) if (arrays.site_train[at] == number).any()]

    def _mean(self, rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Make one row of those of the clients with a model, in their order."""
        of_client = dict(zip(self._outcomes, rows, strict=True))
        result: dict[str, float] = {}
        for name in (name for name in rows[0] if not name.startswith("device_")):
            values = [row[name] for row in rows]
            if site := name.partition("@")[2]:
                values = [of_client[k][name] for k in self._owners(site) if k in of_client]
            if name in SUMMED:
                result[name] = sum(values)
            elif name in SENT:
                result[name] = 0.0
            else:  # rounds stay whole numbers
                result[name] = values[0] if len({*values}) == 1 else float(np.mean(values or [np.nan]))
        return result | over_sites({name: value for name, value in result.items() if "@" in name})


def _said(row: Mapping[str, float], sites: Collection[str]) -> dict[str, str]:
    """Say why the numbers of sites, or those of all test samples by an empty name, are undefined."""
    tested = (name for name in row if name.startswith("test_"))
    return {name: NO_MODEL for name in tested if name.partition("@")[2] in sites}


class Pooled(Simulation):
    """A run on all data in one place (:func:`pooled`): nothing is sent."""

    def run(self) -> Outcome:
        """Train to the end or to divergence."""
        outcome = super().run()
        for row in (*outcome.curve, outcome.metrics):
            row.update(dict.fromkeys(row.keys() & {*SENT}, 0.0))
        return outcome
