"""Other ways to read the runs of a scale: other constants, another evaluation, a longer training.

A verdict that turns with them is fragile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbench import measures
from fedbench.measures import Measure
from fedbench.plan.cells import Cell
from fedbench.plan.claims import ClaimSpec
from fedbench.plan.configuration import CONFIG_DIR, scale_of
from fedbench.plan.schema import Config, Constants, Paper
from fedbench.report.numbers.effects import Effects, Needs, Place, Values, effects
from fedbench.report.numbers.measurement import FINISHED, Repeat
from fedbench.report.numbers.pace import PARTS
from fedbench.report.numbers.readers import Runs, members
from fedbench.results.claims.judge import NOT_RUN, Rule, means_agree, places_with_enough_seeds, verdict
from fedbench.results.statistics import Array
from fedbench.store import results
from fedbench.store.runs import STORE, Store

LONGER = "as long again"
"""The way in which a verdict on runs that were cut short turns."""


class OtherRow(Runs):
    """Runs read at another evaluation than they report.

    At the last one where training selects the best by validation, else at the first that is best by the validation
    counterpart of a test metric. It takes curves: numbers that were shipped have none.
    """

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the value of each seed at that evaluation; a pooled place as :meth:`Runs.end` does."""
        if len(members(place)) > 1:
            return super().end(place, method, metric)
        cell = self.cells.get((place, method))
        if cell is None or not metric.startswith("test_"):
            return {}
        validation = metric.replace("test_", "val_", 1)
        found: dict[Repeat, float] = {}
        for seed, curve in self._runs(place, method):
            if metric in curve and cell.runs[0].train.select is not None:
                found[seed] = float(curve[metric].iloc[-1])
            elif metric in curve and validation in curve and curve[validation].notna().all():
                best = (measures.sign(validation) * curve[validation]).to_numpy().argmax()
                found[seed] = float(curve[metric].iloc[int(best)])
        return {seed: value for seed, value in found.items() if np.isfinite(value)}

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """Return nothing: a whole curve has no other row."""
        return {}

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Return nothing: a whole curve has no other row."""
        return {}


class Longer(Runs):
    """Runs as if they had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the value of each seed whose pace is known."""
        measure = self._paper.measure(metric)
        paces = self.pace(place, method, metric)
        return {
            seed: min(max(value + PARTS * paces[seed], measure.low), measure.high) if seed in paces else value
            for seed, value in super().end(place, method, metric).items()
            if seed in paces or math.isinf(value)
        }

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """Return nothing: a whole curve has no end."""
        return {}

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Return nothing: what was reached on the way stays."""
        return {}


class Stored(Runs):
    """Runs as the store has them, whatever the files of the cells hold: those are of one configuration at a time."""

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the final value of each seed; without any in the store what :meth:`Runs.end` finds."""
        cell = self.cells.get((place, method))
        finished = [run for run in self._results(cell) if run["status"] == FINISHED] if cell else []
        numbers = {run["seed"]: run["metrics"].get(metric) for run in finished}
        found = {seed: value for seed, value in numbers.items() if value is not None and np.isfinite(value)}
        return found or super().end(place, method, metric)

    def _results(self, cell: Cell) -> list[dict[str, Any]]:
        store = Store(self._root / STORE)
        records = [(run.seed, store.load(run.key)) for run in cell.runs]
        return [results.entry(seed, record) for seed, record in records if record is not None]


class Variants:
    """The other ways to read one scale.

    Args:
        config: of the scale.
        paper: whose claims are held against it.
        targets: the tables and figures of the claims.
        own: the scale as it is read otherwise.
        root: the project.
    """

    def __init__(
        self, config: Config, paper: Paper, targets: Iterable[str], own: Runs, root: Path = Path()
    ) -> None:
        names = list(targets)
        self._own = own
        self._readers: dict[str, Runs] = {
            "another evaluation": OtherRow.over(own),
            LONGER: Longer.over(own),
        }
        if any(entry.published for entry in paper.methods.values()):
            published = scale_of(config, root / CONFIG_DIR).constants == "paper"
            other: Constants = "tuned" if published else "paper"
            flipped = config.model_copy(update={"constants": other})
            label = "tuned constants" if published else "published constants"
            self._readers[label] = Stored(flipped, paper, names, root)

    def agree(
        self, claim: ClaimSpec, measure: Measure, rule: Rule, places: Sequence[Place], methods: Sequence[str]
    ) -> Iterator[tuple[str, bool]]:
        """Say of each way that has numbers whether it leans as the scale does at the places they are for.

        A longer training only where it is known of all places that count.
        """
        for label, reader in self._readers.items():
            wanted = [place for place in places if self._differ(reader, place)]
            other = effects(claim, measure, wanted, methods, reader)
            own = effects(claim, measure, wanted, methods, self._own)
            there = ~np.isnan(other.values).any(0).all(-1)
            if label == LONGER and (places_with_enough_seeds(own.values) & ~there).any():
                continue  # of some places nobody knows: it would speak for them
            both = [verdict(values[:, there], rule) for values in (_of_seeds(own, other.seeds), other.values)]
            if all(one.kind != NOT_RUN for one in both):
                yield label, means_agree(both[0], rule) == means_agree(both[1], rule)

    def _differ(self, reader: Runs, place: Place) -> bool:
        """Return whether a way reads other runs of a place than the scale does, or the same ones otherwise."""
        if isinstance(reader, OtherRow | Longer):
            return True
        cells = {*members(place)}
        return any(cell.key != self._own.cells[at].key for at, cell in reader.cells.items() if at[0] in cells)


def _of_seeds(found: Effects, seeds: Sequence[Repeat]) -> Array:
    """Return the effects of those seeds that another way has too; all where it has none of them."""
    shared = [at for at, seed in enumerate(found.seeds) if seed in seeds]
    return found.values[:, :, shared] if shared else found.values
