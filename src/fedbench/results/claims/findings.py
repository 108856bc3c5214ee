"""A paper's claims compared with the numbers: in print, and at every scale that has any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fedbench.metric_table import Measure
from fedbench.results.claims.claim_query import Evidence, Question
from fedbench.results.claims.judge import (
    CONTRADICTED,
    FEWEST,
    LOST,
    NOT_RUN,
    NOT_TESTABLE,
    NOT_TESTED,
    OPEN,
    SUPPORTED,
    UNDECIDED,
    UNSUPPORTED,
    WON,
    Verdict,
    places_with_enough_seeds,
    verdict,
)
from fedbench.results.claims.rules import Rule
from fedbench.results.frame import DIVERGED
from fedbench.results.places import Place, members, places_of, words_of
from fedbench.results.published import printed
from fedbench.results.shipped import from_paper
from fedbench.results.statistics import false_discovery
from fedbench.study.cells import Cell
from fedbench.study.claims import ClaimSpec
from fedbench.study.configuration import CONFIG_DIR, load_config, scale_names
from fedbench.study.plan import Plan

STAND_IN = "stand-in"
EARLY = "curves still move"
"""Why a scale that trains for less time than the paper has no verdict."""


@dataclass(frozen=True)
class AtScale:
    """What one scale says of a claim.

    Attributes:
        scale: its name.
        verdict: what the numbers say; of a stand-in no verdict on the paper.
        places: where they were read, in the order of ``verdict.outcomes``.
        total: how many places the claim is about.
        stand_in: the datasets that stand in for the paper's, none where those ran.
        shipped: whether some of it came with the repository.
        keys: of the cells that were looked at.
        commits: of the code that made them.
        cells: those with runs that were trained here.
        early: whether there is no verdict because it would lean another way if training had gone on.
        waiting: at how many further places fewer seeds ran than a verdict needs.
        unproven: whether it is a verdict of trainings that may be too short, as far as it is known; exponents and
            ratios of costs are no ends of curves.
        ours: the datasets of ours that a claim is about.
        q: of the verdict's p-value among all claims of the paper at this scale; NaN unless that is supported or
            undecided: p is of the claim, not of another finding.
        against: the rival over which the deciding effect is, empty without a choice.
        diverged: the runs that diverged, and what they count as.
    """

    scale: str
    verdict: Verdict
    places: list[Place]
    total: int
    stand_in: tuple[str, ...] = ()
    shipped: bool = False
    keys: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    early: bool = False
    waiting: int = 0
    unproven: bool = False
    ours: tuple[str, ...] = ()
    q: float = math.nan
    against: str = ""
    diverged: tuple[str, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether there is anything to look at."""
        return self.verdict.kind != NOT_RUN

    @property
    def kind(self) -> str:
        """The verdict, ``stand-in`` where there is none because other data ran than the paper's."""
        return STAND_IN if self.stand_in else self.verdict.kind

    @property
    def deciding_place(self) -> Place | None:
        """Where the deciding effect is, None for all places together."""
        return None if self.verdict.at is None else self.places[self.verdict.at]

    @property
    def words(self) -> str:
        """The verdict with its coverage, as a table has it."""
        kind, tally, shown = self.verdict.kind, self.verdict.tally, self.verdict.shown
        on_own_data = f" on {', '.join(self.ours)}" if self.ours else ""
        said = f"{kind}{on_own_data}{f', {EARLY}' if self.early else ''}"
        if not self.ran:
            said = NOT_RUN
        elif self.stand_in:
            said = f"{', '.join(self.stand_in)}, no verdict: shown in {tally}"
        elif kind == NOT_TESTED:
            said += f": means show it in {tally}"
        elif kind == NOT_TESTABLE:
            said += f": its condition holds in none of {self.verdict.asked} settings"
        elif self.total > 1:
            said += f": {', '.join(f'{word} {self.verdict.count(word)}' for word in (WON, LOST, OPEN))}"
            said += f" of {self.total}"
            if kind == UNDECIDED:
                agrees = "agrees" if shown else "does not agree"
                average = f"the average {'is not known' if math.isnan(self.verdict.overall.mean) else agrees}"
                said += f"; {average if self.verdict.at is None else f'means agree in {shown}'}"
        return said + (f"; left out: {self.waiting} with fewer than {FEWEST} seeds" if self.waiting else "")


@dataclass(frozen=True)
class Finding:
    """A claim with what print and scales say of it; ``number`` counts the paper's claims from 1."""

    number: int
    claim: ClaimSpec
    measure: Measure
    rule: Rule
    printed: Verdict
    scales: list[AtScale]

    @property
    def main(self) -> AtScale:
        """The scale nearest to the paper of those with enough seeds of the paper's data for a verdict.

        Without any, of those with runs of its data, then of those with runs.
        """
        ran = [one for one in self.scales if one.ran]
        on_paper_data = [one for one in ran if not one.stand_in]
        enough = [one for one in on_paper_data if one.verdict.seeds >= FEWEST]
        return (enough or on_paper_data or ran or self.scales)[-1]


def find(plan: Plan) -> list[Finding]:
    """Hold the claims of a paper against print and all scales; ``plan`` is that of its own scale."""
    paper = plan.study
    questions = [Question(claim, paper) for claim in paper.claims]
    targets = list(dict.fromkeys(target for claim in paper.claims for target in claim.targets))
    metrics = list(dict.fromkeys(question.metric for question in questions))
    scales = [Evidence(at_scale, targets, metrics) for at_scale in _plans(plan)]
    prints, findings = {target: printed(paper, target, metrics) for target in targets}, []
    for number, asked in enumerate(questions, 1):
        claim = asked.claim
        numbers = pd.concat([prints[target] for target in claim.targets])
        numbers = numbers[numbers["metric"] == asked.metric].drop_duplicates(["place", "method"])
        said = verdict(asked.effects(numbers, asked.places, printed=True).values, asked.rule)
        at = [_at_scale(asked, runs) for runs in scales]
        findings.append(Finding(number, claim, asked.measure, asked.rule, said, at))
    for at_, _ in enumerate(scales):
        ps = [math.nan if one.scales[at_].stand_in else one.scales[at_].verdict.p for one in findings]
        for finding, q in zip(findings, false_discovery(ps), strict=True):
            of_claim = finding.scales[at_].verdict.kind in (SUPPORTED, UNDECIDED)
            finding.scales[at_] = replace(finding.scales[at_], q=q if of_claim else math.nan)
    return findings


def _plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plan of every scale: of others than its own with what the file says instead of this call."""
    config = plan.config
    file = load_config() if (CONFIG_DIR / "config.yaml").exists() else config
    for name in sorted(scale_names(), key=from_paper, reverse=True):
        update = {"scale": name, "shipped": config.shipped}
        yield plan.at((config if name == config.scale else file).model_copy(update=update))


def _at_scale(asked: Question, runs: Evidence) -> AtScale:
    """Return what one scale says of a claim."""
    claim, scale, paper = asked.claim, runs.plan.scale.name, runs.plan.study
    of_paper = [place for place in asked.places if claim.own_data or paper.datasets[_dataset(place)].printed]
    numbers = runs.numbers[asked.metric]
    effects = asked.effects(numbers, of_paper)
    judged, total = asked.verdict(effects), len(effects.places)
    stand_in: tuple[str, ...] = ()
    if judged.kind == NOT_RUN and len(numbers):
        elsewhere = _stand_ins(asked, runs, of_paper)
        instead = asked.effects(numbers, elsewhere)
        if (of_others := asked.verdict(instead)).kind != NOT_RUN:
            effects, judged, total = instead, of_others, total or len(instead.places)
            stand_in = tuple(dict.fromkeys(map(_dataset, elsewhere)))
    ran = judged.kind != NOT_RUN
    if claim.untested and ran:
        judged = replace(judged, kind=NOT_TESTED, p=math.nan)
    used = effects.read if ran else effects.read[:0]
    counted = places_with_enough_seeds(effects.values)
    places = [place for place, counts in zip(effects.places, counted, strict=True) if counts]
    if judged.kind in (CONTRADICTED, UNSUPPORTED) and asked.rule.holds == "some" and len(places) < total:
        judged = replace(judged, kind=UNDECIDED)  # one of those that have not run may show it
    longer = asked.agrees_after_longer(numbers, of_paper, effects) if len(used) and not stand_in else None
    decided = judged.kind not in (UNDECIDED, NOT_TESTED) and from_paper(scale) > 0
    early = decided and longer is False
    of_ends = asked.measure.matters > 0 and not (claim.ratio and claim.ratio.needs)
    of_ours = [data for data in map(_dataset, places) if claim.own_data and not paper.datasets[data].printed]
    return AtScale(
        scale, replace(judged, kind=UNDECIDED) if early else judged, places, total, stand_in,
        shipped=bool(used["shipped"].any()),
        keys=tuple(sorted({*used["key"]})),
        commits=tuple(sorted({commit for commits in used["commit"] for commit in commits.split()})),
        cells=runs.trained(used),
        early=early,
        waiting=int(((~np.isnan(effects.values).any(0)).any(-1) & ~counted).sum()),
        unproven=ran and not stand_in and decided and of_ends and longer is None,
        ours=tuple(dict.fromkeys(of_ours)),
        against=effects.against[judged.against] if effects.against else "",
        diverged=tuple(_diverged(effects.read)),
    )  # fmt: skip


def _dataset(place: Place) -> str:
    return str(dict(place)["dataset"])


def _stand_ins(asked: Question, runs: Evidence, of_paper: Sequence[Place]) -> list[Place]:
    """List the places of other data than the paper's that a claim names, else of those that the scale runs for it.

    None where a claim is about some datasets alone: a stand-in shows nothing of one dataset.
    """
    claim, paper = asked.claim, runs.plan.study
    if "dataset" in claim.only:
        return []
    if named := [place for place in asked.places if place not in of_paper]:
        return named
    shows = {dataset for target in claim.targets for dataset in paper.targets[target].datasets}
    others = [name for name in runs.datasets if name not in shows]
    planned = {place for place, _ in runs.planned}
    return [
        place for place in places_of(paper, claim.targets, others) if planned.intersection(members(place))
    ]


def _diverged(read: pd.DataFrame) -> Iterator[str]:
    """Name the runs that diverged."""
    lost: Any = read[read["status"] == DIVERGED]
    for (method, place), seeds in lost.groupby(["method", "place"], sort=False)["seed"] if len(lost) else ():
        yield f"{method} at {words_of(place)}, seed {', '.join(map(str, seeds))}"
