"""A paper's claims held against the numbers: in print, and at every scale that has any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedbench.measures import Measure
from fedbench.plan.claim_log import asked_differently_until, read_log
from fedbench.plan.claims import ClaimSpec
from fedbench.plan.configuration import CONFIG_DIR, load_config
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper
from fedbench.report.numbers.evidence import Evidence, is_end
from fedbench.report.numbers.prints import printed, printed_in
from fedbench.report.numbers.variants import LONGER, Variants
from fedbench.results.claims.effects import Effects, asked, effects, rule_of
from fedbench.results.claims.judge import (
    FEWEST,
    LOST,
    NOT_RUN,
    NOT_TESTABLE,
    NOT_TESTED,
    OPEN,
    UNDECIDED,
    WON,
    Bools,
    Rule,
    Verdict,
    means_agree,
    places_with_enough_seeds,
    verdict,
)
from fedbench.results.claims.needed import seeds_needed
from fedbench.results.places import Place, members, places_of, shown, words_of
from fedbench.results.statistics import false_discovery

LAST = ("reduced", "paper")
"""Scales in the order in which they come nearer to the paper; others come before."""


STAND_IN = "stand-in"
EARLY = "curves still move"
"""Why a scale that trains for less time than the paper has no verdict."""


@dataclass(frozen=True)
class Tally:
    """At how many places the numbers show what is claimed."""

    won: int
    places: int

    def __str__(self) -> str:
        """As in a table."""
        return f"{self.won} of {self.places}" if self.places else "–"


@dataclass(frozen=True)
class AtScale:
    """What one scale says of a claim.

    Attributes:
        scale: its name.
        verdict: what the numbers say; of a stand-in no verdict on the paper.
        places: where they were read, in the order of ``verdict.places``.
        total: how many places the claim is about.
        stand_in: the datasets that stand in for the paper's, none where those ran.
        shipped: whether some of it came with the repository.
        keys: of the cells that were looked at.
        commits: of the code that made them.
        left_out: whether the verdict leans the same way without any one seed, None where there is no second.
        variants: other ways to read the scale, and whether the verdict leans the same way
            (:class:`~fedbench.report.numbers.variants.Variants`).
        early: whether there is no verdict because it would lean another way if training had gone on.
        waiting: at how many further places fewer seeds ran than a verdict needs.
        of_ends: whether it compares what runs end with, on a metric whose better end is known.
        q: of the verdict's p-value among all claims of the paper at this scale.
        needed: seeds that an undecided one takes (:mod:`fedbench.results.claims.needed`).
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
    left_out: bool | None = None
    variants: tuple[tuple[str, bool], ...] = ()
    early: bool = False
    waiting: int = 0
    of_ends: bool = True
    own: tuple[str, ...] = ()
    q: float = math.nan
    needed: float = math.nan
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
    def unproven(self) -> bool:
        """Whether it is a verdict of trainings that may be too short, as far as it is known.

        Exponents and ratios of costs are no ends of curves.
        """
        decided = (
            self.ran
            and not self.stand_in
            and self.verdict.kind not in (UNDECIDED, NOT_TESTED)
            and self.scale != LAST[-1]
        )
        return decided and self.of_ends and LONGER not in dict(self.variants)

    @property
    def tally(self) -> Tally:
        """At how many of the places that ran the means show it."""
        return Tally(self.verdict.shown, len(self.verdict.places))

    @property
    def deciding_place(self) -> Place | None:
        """Where the deciding effect is, None for all places together."""
        return None if self.verdict.at is None else self.places[self.verdict.at]

    @property
    def words(self) -> str:
        """The verdict with its coverage, as a table has it."""
        more = f"; left out: {self.waiting} with fewer than {FEWEST} seeds" if self.waiting else ""
        return self._words + more

    @property
    def _words(self) -> str:
        if not self.ran:
            return NOT_RUN
        if self.stand_in:
            return f"{', '.join(self.stand_in)}, no verdict: shown at {self.tally}"
        own = f" on {', '.join(self.own)}" if self.own else ""
        early = f", {EARLY}" * self.early
        kind = f"{self.verdict.kind}{own}{early}"
        if self.verdict.kind == NOT_TESTED:
            return f"{kind}: means show it at {self.tally}"
        if self.verdict.kind == NOT_TESTABLE:
            return f"{kind}: its condition holds at none of {self.tally.places} places"
        if self.total == 1:
            return kind
        counts = ", ".join(f"{word} {self.verdict.count(word)}" for word in (WON, LOST, OPEN))
        means = f"; means agree at {self.tally.won}" if self.verdict.kind == UNDECIDED else ""
        return f"{kind}: {counts} of {self.total}{means}"


@dataclass(frozen=True)
class Finding:
    """A claim with what print and scales say of it; ``number`` counts the paper's claims from 1."""

    number: int
    claim: ClaimSpec
    measure: Measure
    rule: Rule
    printed: Tally
    scales: list[AtScale]
    changed: str = ""
    """Until when it was asked differently, if it was changed after its numbers were there."""

    @property
    def main(self) -> AtScale:
        """The scale nearest to the paper of those with enough seeds of the paper's data for a verdict.

        Without any, of those with runs of its data, then of those with runs.
        """
        ran = [one for one in self.scales if one.ran]
        own = [one for one in ran if not one.stand_in]
        enough = [one for one in own if one.verdict.seeds >= FEWEST]
        return (enough or own or ran or self.scales)[-1]

    @property
    def strip(self) -> list[tuple[str, bool]]:
        """Which way each part of the evidence leans: every scale, without one seed, and read in other ways."""
        found = []
        for one in self.scales:
            if one.ran and not one.stand_in:
                found.append((one.scale, means_agree(one.verdict, self.rule)))
                whole = found[-1][1]
                if one.left_out is not None:
                    found.append((f"{one.scale}, without one seed", whole == one.left_out))
                found += [(f"{one.scale}, {label}", whole == same) for label, same in one.variants]
        return found

    @property
    def fragile(self) -> bool:
        """Whether parts of the evidence lean different ways."""
        return len({leans for _, leans in self.strip}) > 1


def find(plan: Plan) -> list[Finding]:
    """Hold the claims of a paper against print and all scales; ``plan`` is that of its own scale."""
    paper, config = plan.study, plan.config
    names = sorted(path.stem for path in (CONFIG_DIR / "scales").glob("*.yaml"))
    names.sort(key=lambda name: LAST.index(name) if name in LAST else -1)
    file = load_config() if (CONFIG_DIR / "config.yaml").exists() else config
    about = (
        list(dict.fromkeys(target for claim in paper.claims for target in claim.targets)),
        list(dict.fromkeys(map(asked, paper.claims))),
    )
    readers = {}
    for name in names:
        update = {"scale": name, "shipped": config.shipped}
        there = plan.at((config if name == config.scale else file).model_copy(update=update))
        own = Evidence(there, *about)
        readers[name] = own, Variants(there, *about, own)
    prints = printed(paper, *about)
    log = read_log()
    found = [
        replace(
            _finding(number, claim, paper, readers, prints),
            changed=asked_differently_until(log, paper.key, claim.digest),
        )
        for number, claim in enumerate(paper.claims, 1)
    ]
    for at, _ in enumerate(names):
        ps = [math.nan if one.scales[at].stand_in else one.scales[at].verdict.p for one in found]
        for one, q in zip(found, false_discovery(ps), strict=True):
            one.scales[at] = replace(one.scales[at], q=q)
    return found


def _finding(
    number: int,
    claim: ClaimSpec,
    paper: Paper,
    readers: Mapping[str, tuple[Evidence, Variants]],
    prints: pd.DataFrame,
) -> Finding:
    measure = paper.measure(claim.metric)
    rule = rule_of(claim, measure)
    methods = list(dict.fromkeys(m for target in claim.targets for m in shown(paper, target).methods))
    places = places_of(paper, claim.targets)
    in_print = effects(claim, measure, places, methods, printed_in(prints, claim.targets, asked(claim)))
    said = verdict(in_print.values, rule)
    scales = [_at_scale(name, claim, paper, rule, places, methods, *ways) for name, ways in readers.items()]
    return Finding(number, claim, measure, rule, Tally(said.shown, len(said.places)), scales)


def _at_scale(
    name: str, claim: ClaimSpec, paper: Paper, rule: Rule, places: list[Place], methods: list[str],
    runs: Evidence, variants: Variants,
) -> AtScale:  # fmt: skip
    measure = paper.measure(claim.metric)
    numbers = runs.of(asked(claim))
    of_paper = [place for place in places if claim.own_data or paper.datasets[_dataset(place)].printed]
    found = effects(claim, measure, of_paper, methods, numbers)
    stand_in: tuple[str, ...] = ()
    decided, total = verdict(found.values, rule), len(found.places)
    if decided.kind == NOT_RUN and "dataset" not in claim.only:  # a stand-in shows nothing of one dataset
        named = [place for place in places if place not in of_paper]
        shows = {d for target in claim.targets for d in shown(paper, target).datasets}
        own = tuple(d for d in runs.datasets if d not in shows or not paper.datasets[d].printed)
        there = named or _settings_run(paper, claim, runs, own)
        instead = effects(claim, measure, there, methods, numbers)
        shown_there = verdict(instead.values, rule)
        if shown_there.kind != NOT_RUN:
            stand_in = tuple(dict.fromkeys(map(_dataset, there)))
            found, decided, total = instead, shown_there, total or len(instead.places)
    if claim.untested and decided.kind != NOT_RUN:
        decided = replace(decided, kind=NOT_TESTED, p=math.nan)
    at = places_with_enough_seeds(found.values)
    ran = [place for place, there in zip(found.places, at, strict=True) if there]
    used = found.read[: None if decided.kind != NOT_RUN else 0]
    judged = len(used) and not stand_in
    ways = tuple(variants.agree(claim, measure, rule, of_paper, methods)) if judged else ()
    early = decided.kind not in (UNDECIDED, NOT_TESTED) and name != LAST[-1] and (LONGER, False) in ways
    own_ran = [d for d in map(_dataset, ran) if not paper.datasets[d].printed] if claim.own_data else []
    return AtScale(
        scale=name,
        verdict=replace(decided, kind=UNDECIDED) if early else decided,
        places=ran,
        total=total,
        stand_in=stand_in,
        shipped=bool(used["shipped"].any()),
        keys=tuple(sorted({*used["key"]})),
        commits=tuple(sorted({commit for commits in used["commit"] for commit in commits.split()})),
        left_out=_left_out(found, rule),
        variants=ways,
        early=early,
        waiting=int(_ran(found).sum() - at.sum()),
        of_ends=measure.matters > 0 and not (claim.ratio and claim.ratio.needs),
        own=tuple(dict.fromkeys(own_ran)),
        needed=seeds_needed(found.values, rule, decided) if decided.kind == UNDECIDED else math.nan,
        against=found.against[decided.against] if found.against else "",
        diverged=tuple(_diverged(found.read)) if is_end(asked(claim)) else (),
    )


def _dataset(place: Place) -> str:
    return str(dict(place)["dataset"])


def _settings_run(paper: Paper, claim: ClaimSpec, runs: Evidence, datasets: Sequence[str]) -> list[Place]:
    """List the places of stand-ins that the scale runs for the tables and figures of a claim."""
    wanted = places_of(paper, claim.targets, datasets)
    there = {place for place, _ in runs.planned}
    return [place for place in wanted if there.intersection(members(place))]


def _diverged(read: pd.DataFrame) -> Iterator[str]:
    """Name the runs that diverged."""
    lost = read[np.isinf(read["value"])]
    runs: dict[tuple[str, Place], list[str]] = {}
    for method, place, seed in zip(lost["method"], lost["place"], lost["seed"], strict=True):
        runs.setdefault((method, place), []).append(str(seed))
    for (method, place), seeds in runs.items():
        yield f"{method} at {words_of(place)}, seed {', '.join(seeds)}"


def _ran(found: Effects) -> Bools:
    """Say at which places any seed ran: [places]."""
    return np.asarray((~np.isnan(found.values).any(0)).any(-1))


def _left_out(found: Effects, rule: Rule) -> bool | None:
    """Say whether the effect leans the same way without any one of the seeds; None with fewer than three.

    At the places that the verdict is about: without a seed others that wait would come in.
    """
    if len(found.seeds) < FEWEST:
        return None
    values = found.values[:, places_with_enough_seeds(found.values)]
    whole = means_agree(verdict(values, rule), rule)
    rest = [verdict(np.delete(values, i, 2), rule) for i in range(len(found.seeds))]
    return all(means_agree(one, rule) == whole for one in rest if one.kind != NOT_RUN)
