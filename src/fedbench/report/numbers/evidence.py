"""What claims are held against: the numbers of a scale's runs, as a frame of the form that print has, too.

A row for each run and metric: ``place``, ``method``, ``seed``, ``metric``, ``value``, and what is known of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from fedbench import measures
from fedbench.plan.cells import Cell, path_of
from fedbench.plan.plan import Plan
from fedbench.plan.schema import TableSpec
from fedbench.report.numbers.aggregate import key_of
from fedbench.report.numbers.rates import table_of_rates
from fedbench.report.numbers.rows import AVERAGED, COSTS, DIVERGED, HERE, NAN, SHIPPED
from fedbench.report.numbers.runs import table_of_runs
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.places import Place, members, place_of, places_of, shown

COLUMNS = ["place", "method", "seed", "metric", "value", "tried", "pace", "other", "key", "commit", "shipped"]
"""Of a frame of numbers; ``key`` is that of the cell."""
At = tuple[Place, str]
"""A place and a method."""


class Evidence:
    """The runs of a paper at one scale, trained here, else shipped.

    Attributes:
        planned: the places and methods of the ``targets`` that the scale runs, whether it has or not.
        cells: those that may have runs, also where the paper has numbers and the scale runs nothing.
    """

    def __init__(
        self, plan: Plan, targets: Sequence[str], metrics: Sequence[str]
    ) -> None:  # fmt: skip
        """Read the runs."""
        paper = plan.study
        self._plan, self._shipped = plan, Shipped(plan)
        specs = {target: shown(paper, target) for target in targets}
        run = [at for spec in specs.values() for at in plan.places(spec)]
        self.planned = list(
            dict.fromkeys((place_of(dataset, setting), method) for dataset, setting, method in run)
        )
        printed = [
            (member, method)
            for target, spec in specs.items()
            if spec.kind != "rates"
            for place in places_of(paper, [target])
            for member in members(place)
            for method in spec.methods
        ]
        cells = {at: self._cell(*at) for at in (*self.planned, *printed)}
        self.cells = {at: cell for at, cell in cells.items() if cell is not None}
        runs = [table_of_runs([*self.cells.values()], metrics, self._shipped)]
        for target, spec in specs.items():
            if (
                isinstance(spec, TableSpec)
                and spec.kind == "rates"
                and any(at in self.cells for at in self.planned)
            ):
                fitted = table_of_rates(plan.cells(target), spec, self._shipped)
                runs.append(fitted[fitted["value"].notna()])
        numbers = self._numbers_of(pd.concat(runs, ignore_index=True), metrics)
        numbers = numbers.reindex(columns=COLUMNS).astype(dict.fromkeys(COLUMNS[4:8], float))
        numbers = numbers[numbers["value"].notna()]
        self._numbers: dict[str, pd.DataFrame] = {str(name): part for name, part in numbers.groupby("metric")}
        self._none: pd.DataFrame = numbers[:0]

    def of(self, metric: str) -> pd.DataFrame:
        """Return the numbers of one metric."""
        return self._numbers.get(metric, self._none)

    def key(self, at: At) -> str:
        """Return the key of a cell, empty where there is none."""
        return self.cells[at].key if at in self.cells else ""

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(str(place[0][1]) for place, _ in self.planned))

    def _cell(self, place: Place, method: str) -> Cell | None:
        """Return a cell that has results here or may have been shipped."""
        dataset, setting, name = str(place[0][1]), dict(place[1:]), self._plan.scale.name
        if path_of(name, self._plan.study.key, dataset, setting, method).exists():
            return self._plan.cell(dataset, setting, method)
        return self._shipped.cell(name, dataset, setting, method)

    def _numbers_of(self, runs: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
        """Return runs in the form of claims; one that diverged has a row for each metric."""
        here = {*runs.loc[runs["origin"] == HERE, ["place", "method"]].itertuples(index=False, name=None)}
        broken = runs[(runs["metric"] == "") & (runs["origin"] != "")]
        asked = [runs[runs["metric"].isin(metrics)], *(broken.assign(metric=metric) for metric in metrics)]
        numbers = pd.concat(asked).sort_index(kind="stable").reset_index(drop=True)
        worst = {
            metric: -self._plan.study.measure(metric).sign * math.inf if is_end(metric) else NAN
            for metric in metrics
        }
        diverged, at = numbers["status"] == DIVERGED, ["place", "method", "metric"]
        values = numbers["value"].where(numbers["status"] != AVERAGED)
        keys = numbers.groupby(at, sort=False)["key"].agg(lambda keys: key_of([*keys])).to_dict()
        return numbers.assign(
            value=values.mask(diverged, numbers["metric"].map(worst)),
            shipped=numbers["origin"] == SHIPPED,
            key=[
                cell if (place, method) in here else keys[place, method, metric]
                for place, method, metric, cell in numbers[[*at, "cell"]].itertuples(index=False, name=None)
            ],
        )


def is_end(metric: str) -> bool:
    """Say whether a metric is what a run ends with: no cost, and nothing that is read off its curve."""
    return metric not in COSTS and not measures.target(metric) and not measures.curve_mean(metric)
