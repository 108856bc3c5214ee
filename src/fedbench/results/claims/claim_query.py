"""A claim as it is asked of numbers, and the numbers of a scale's runs, as a frame of the form that print has, too.

A row for each run and metric: ``place``, ``method``, ``seed``, ``metric``, ``value``, and what is known of the run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.metric_table import Measure
from fedbench.results.aggregate import key_of
from fedbench.results.claims.effects import Effects, effects
from fedbench.results.claims.judge import Verdict, means_agree, places_with_enough_seeds, verdict
from fedbench.results.claims.rules import Rule
from fedbench.results.frame import AVERAGED, COSTS, DIVERGED, HERE, NUMBER, SHIPPED, Row, frame_of
from fedbench.results.places import Place, members, place_of, places_of
from fedbench.results.rates import rates_of_cells
from fedbench.results.run_facts import PARTS
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped
from fedbench.results.statistics import least_spread
from fedbench.study.cells import Cell, label_of, path_of
from fedbench.study.claims import ClaimSpec
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, TableSpec


class Question:
    """A claim of a study, to be asked of any frame of numbers.

    Attributes:
        claim: what the configuration says of it.
        metric: whose values it compares.
        measure: what is known of the metric that its rule is about.
        rule: what the arithmetic is asked.
        places: where its tables and figures show numbers.
        methods: those that they show.
        cells: the places where they show each of these, with its name.
    """

    def __init__(self, claim: ClaimSpec, paper: Paper) -> None:
        """Read the claim of a study."""
        self.claim, self.metric = claim, asked(claim)
        self.measure = paper.measure(claim.metric)
        self.rule = rule_of(claim, self.measure)
        self.places = places_of(paper, claim.targets)
        self.methods = list(
            dict.fromkeys(m for target in claim.targets for m in paper.targets[target].methods)
        )

        self.cells = {
            (place, method)
            for target in claim.targets
            for place, method in itertools.product(places_of(paper, [target]), paper.targets[target].methods)
            if any(paper.methods[method].has(dict(member)) for member in members(place))
        }

    def effects(self, numbers: pd.DataFrame, places: Sequence[Place], printed: bool = False) -> Effects:
        """Compare numbers of its metric at some places; none is to come of those that are ``printed``."""
        cells = () if printed else self.cells
        return effects(self.claim, self.measure, places, self.methods, numbers, cells)

    def verdict(self, effects: Effects) -> Verdict:
        """Judge effects; the values that they were read from bound the step of the metric on each dataset.

        Of a dataset the closest bound of its places counts, of all datasets the coarsest. The largest setting moves in
        the steps of its logarithm. What has no ends moves in no steps, nor does the logarithm of a cost.
        """
        least, ends, read = 0.0, self.measure.ends, effects.read
        if self.claim.ratio and (axis := self.claim.ratio.largest):
            tried = {float(dict(place)[axis]) for place in self.places}
            least = least_spread(np.log(sorted(tried)))
        elif ends and self.rule.form != "ratio" and len(read):
            values = read.groupby(["place", "metric"], sort=False)["value"]
            steps = values.transform(lambda of_place: least_spread([*ends, *of_place]))
            least = float(steps.groupby([place[0][1] for place in read["place"]]).min().max())
        return verdict(effects.values, replace(self.rule, least=least))

    def agrees_after_longer(
        self, numbers: pd.DataFrame, places: Sequence[Place], effects: Effects
    ) -> bool | None:
        """Say whether the means lean as the ``effects`` of ``numbers`` do after as long a training again.

        None where the pace is not known of all places that count, or the metric is not what a run ends with.
        """
        if not is_end(self.metric):
            return None
        after = self.effects(longer(numbers, self.measure), places)
        known = ~np.isnan(after.values).any(0).all(-1)
        if (places_with_enough_seeds(effects.values) & ~known).any():
            return None
        shared = [at for at, seed in enumerate(effects.seeds) if seed in after.seeds]
        now = effects.values[:, :, shared] if shared else effects.values
        leans, then = (means_agree(values[:, known], self.rule) for values in (now, after.values))
        return None if leans is None or then is None else leans == then


def rule_of(claim: ClaimSpec, measure: Measure) -> Rule:
    """Return what the arithmetic is asked for a claim."""
    if claim.ratio:
        bound = claim.ratio.at_least or 1 / (claim.ratio.at_most or math.inf)
        return Rule("ratio", math.log(bound))
    form = claim.comparison or claim.trend
    return Rule(
        claim.form, form.margin if form else 0.0, measure.matters, "some" if claim.exists else claim.holds
    )


def asked(claim: ClaimSpec) -> str:
    """Name the metric whose values a claim compares: what runs end with, a mean over curves, or a cost."""
    if (form := claim.comparison or claim.trend) and form.over == "curve":
        return metric_table.over_curve(claim.metric)
    if claim.ratio and claim.ratio.needs:
        spent = next(name for name, column in metric_table.SPENT.items() if column == claim.ratio.needs)
        targets = [metric_table.rounds_to(metric, value, spent) for metric, value in claim.ratio.to.items()]
        return targets[0] if targets else claim.ratio.needs
    return claim.metric


def is_end(metric: str) -> bool:
    """Say whether a metric is what a run ends with: no cost, and nothing that is read off its curve."""
    return metric not in COSTS and not metric_table.target(metric) and not metric_table.curve_mean(metric)


def longer(numbers: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return numbers of one metric as if runs had gone on for as long again at the pace at which they ended.

    Curves level off, so that few would come as far: a verdict that stands there is not one of a training cut short.
    """
    moved = (numbers["value"] + PARTS * numbers["pace"]).clip(measure.low, measure.high)
    return numbers.assign(value=numbers["value"].where(np.isinf(numbers["value"]), moved))


class Evidence:
    """The runs of a paper at one scale, trained here, else shipped.

    Attributes:
        plan: of the scale.
        planned: the places and methods of the ``targets`` that the scale runs, whether it has or not.
        cells: those that may have runs, also where the paper has numbers and the scale runs nothing.
        numbers: of each metric.
    """

    def __init__(self, plan: Plan, targets: Sequence[str], metrics: Sequence[str]) -> None:
        """Read the runs."""
        self.plan, self._shipped = plan, Shipped(plan)
        specs = {target: plan.study.targets[target] for target in targets}
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
        runs = runs_of_cells([*self.cells.values()], metrics, self._shipped)
        for target, spec in specs.items():
            if not isinstance(spec, TableSpec) or spec.kind != "rates":
                continue
            if any(at in self.cells for at in self.planned):
                fitted = rates_of_cells(plan.cells(target), spec, self._shipped)
                runs += [row for row in fitted if not math.isnan(row.value)]
        numbers = numbers_of(runs, metrics, plan.study)
        self.numbers = {metric: numbers[numbers["metric"] == metric] for metric in metrics}

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(str(place[0][1]) for place, _ in self.planned))

    def trained(self, used: pd.DataFrame) -> tuple[Cell, ...]:
        """Return the cells with runs of ours among the numbers that are ``used``."""
        keys = {*" ".join(used.loc[~used["shipped"], "key"]).split()}
        return tuple(cell for cell in self.cells.values() if cell.key in keys)

    def _cell(self, place: Place, method: str) -> Cell | None:
        """Return a cell that has results here or may have been shipped."""
        dataset, setting, scale = str(place[0][1]), dict(place[1:]), self.plan.scale.name
        label = label_of(self.plan.told(dataset, setting))
        if path_of(scale, self.plan.study.key, dataset, label, method).exists():
            return self.plan.cell(dataset, setting, method)
        return self._shipped.cell(scale, dataset, setting, method)


def numbers_of(runs: Sequence[Row], metrics: Sequence[str], paper: Paper) -> pd.DataFrame:
    """Return runs in the form of claims: one that diverged has the worst value of each metric, ``key`` is a cell's."""
    known = frame_of((row for row in runs if row.origin and row.status != AVERAGED), Row)
    cells = known.assign(trained=known["origin"] == HERE).groupby(["place", "method"], sort=False)
    known["trained"] = cells["trained"].transform("any")
    diverged = known[known["status"] == DIVERGED]
    signs = {
        name: paper.measure(metric_table.curve_mean(name) or name).sign
        for name in metrics
        if name not in COSTS
    }
    # it never reached a target, however long it had gone on
    lost = (
        diverged.assign(metric=name, value=-sign * math.inf, tried=math.inf) for name, sign in signs.items()
    )
    # in the order of seeds, which a cell's key rests on
    numbers = pd.concat([known[known["metric"].isin(metrics)], *lost]).sort_index(
        kind="stable", ignore_index=True
    )
    keys = numbers.groupby([*NUMBER], sort=False)["key"].transform(lambda keys: key_of([*keys]))
    numbers["key"] = numbers["cell"].where(numbers["trained"], keys)
    return numbers[numbers["value"].notna()].assign(shipped=numbers["origin"] == SHIPPED)
