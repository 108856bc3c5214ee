"""What claims are compared with: the numbers of a scale's runs, as a frame of the form that print has, too.

A row for each run and metric: ``place``, ``method``, ``seed``, ``metric``, ``value``, and what is known of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from fedbench import measures
from fedbench.plan.cells import Cell, path_of
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers.aggregate import key_of
from fedbench.report.numbers.rates import table_of_rates
from fedbench.report.numbers.rows import AVERAGED, COSTS, DIVERGED, HERE, NAN, NUMBER, SHIPPED
from fedbench.report.numbers.runs import table_of_runs
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.places import Place, members, place_of, places_of, shown


class Evidence:
    """The runs of a paper at one scale, trained here, else shipped.

    Attributes:
        plan: of the scale.
        planned: the places and methods of the ``targets`` that the scale runs, whether it has or not.
        cells: those that may have runs, also where the paper has numbers and the scale runs nothing.
    """

    def __init__(self, plan: Plan, targets: Sequence[str], metrics: Sequence[str]) -> None:
        """Read the runs."""
        self.plan, self._shipped = plan, Shipped(plan)
        specs = {target: shown(plan.study, target) for target in targets}
        run = (at for spec in specs.values() for at in plan.places(spec))
        self.planned = list(dict.fromkeys((place_of(data, setting), method) for data, setting, method in run))
        printed = (
            (member, method)
            for target, spec in specs.items()
            if spec.kind != "rates"
            for place in places_of(plan.study, [target])
            for member in members(place)
            for method in spec.methods
        )
        cells = {at: self._cell(*at) for at in (*self.planned, *printed)}
        self.cells = {at: cell for at, cell in cells.items() if cell is not None}
        runs = [table_of_runs([*self.cells.values()], metrics, self._shipped)]
        for target, spec in specs.items():
            if not isinstance(spec, TableSpec) or spec.kind != "rates":
                continue
            if any(at in self.cells for at in self.planned):
                fitted = table_of_rates(plan.cells(target), spec, self._shipped)
                runs.append(fitted[fitted["value"].notna()])
        numbers = numbers_of(pd.concat(runs, ignore_index=True), metrics, plan.study)
        self._numbers = {metric: numbers[numbers["metric"] == metric] for metric in metrics}

    def of(self, metric: str) -> pd.DataFrame:
        """Return the numbers of one metric."""
        return self._numbers[metric]

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(str(place[0][1]) for place, _ in self.planned))

    def _cell(self, place: Place, method: str) -> Cell | None:
        """Return a cell that has results here or may have been shipped."""
        dataset, setting, scale = str(place[0][1]), dict(place[1:]), self.plan.scale.name
        if path_of(scale, self.plan.study.key, dataset, setting, method).exists():
            return self.plan.cell(dataset, setting, method)
        return self._shipped.cell(scale, dataset, setting, method)


def numbers_of(runs: pd.DataFrame, metrics: Sequence[str], paper: Paper) -> pd.DataFrame:
    """Return runs in the form of claims: one that diverged has the worst value of each metric, ``key`` is a cell's."""
    trained = (runs["origin"] == HERE).groupby([runs["place"], runs["method"]]).transform("any")
    runs = runs.assign(trained=trained)
    broken = runs[(runs["metric"] == "") & (runs["origin"] != "")]
    broken = broken.loc[broken.index.repeat(len(metrics))].assign(metric=[*metrics] * len(broken))
    numbers = pd.concat([runs[runs["metric"].isin(metrics)], broken]).sort_index(kind="stable")
    worst = {name: -paper.measure(name).sign * math.inf if is_end(name) else NAN for name in metrics}
    values = numbers["value"].where(numbers["status"] != AVERAGED)
    of_runs = numbers.groupby([*NUMBER])["key"].transform(lambda keys: key_of([*keys]))
    numbers = numbers.assign(
        value=values.mask(numbers["status"] == DIVERGED, numbers["metric"].map(worst)),
        shipped=numbers["origin"] == SHIPPED,
        key=numbers["cell"].where(numbers["trained"], of_runs),
    )
    return numbers[numbers["value"].notna()].copy()  # columns of one type in one array again


def is_end(metric: str) -> bool:
    """Say whether a metric is what a run ends with: no cost, and nothing that is read off its curve."""
    return metric not in COSTS and not measures.target(metric) and not measures.curve_mean(metric)
