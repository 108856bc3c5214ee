"""A paper's claims compared with the numbers: in print, and at every scale that has any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fedbench.results.claims.claim_query import Question
from fedbench.results.claims.evidence import Evidence, is_end
from fedbench.results.claims.finding import SCALES, AtScale, Finding, Tally
from fedbench.results.claims.judge import (
    CONTRADICTED,
    NOT_RUN,
    NOT_TESTED,
    UNDECIDED,
    places_with_enough_seeds,
    verdict,
)
from fedbench.results.claims.longer import agrees_after_longer
from fedbench.results.places import Place, members, places_of, shown, words_of
from fedbench.results.published import printed, printed_in
from fedbench.results.statistics import false_discovery
from fedbench.study.configuration import CONFIG_DIR, load_config, scale_names
from fedbench.study.plan import Plan


def find(plan: Plan) -> list[Finding]:
    """Hold the claims of a paper against print and all scales; ``plan`` is that of its own scale."""
    paper = plan.study
    questions = [Question(claim, paper) for claim in paper.claims]
    targets = list(dict.fromkeys(target for claim in paper.claims for target in claim.targets))
    metrics = list(dict.fromkeys(question.metric for question in questions))
    scales = [Evidence(at_scale, targets, metrics) for at_scale in _plans(plan)]
    prints, findings = printed(paper, targets, metrics), []
    for number, asked in enumerate(questions, 1):
        claim = asked.claim
        numbers = printed_in(prints, claim.targets, asked.metric)
        said = verdict(asked.effects(numbers, asked.places).values, asked.rule)
        tally = Tally(said.shown, said.asked)
        at = [_at_scale(asked, runs) for runs in scales]
        findings.append(Finding(number, claim, asked.measure, asked.rule, tally, at))
    for at_, _ in enumerate(scales):
        ps = [math.nan if one.scales[at_].stand_in else one.scales[at_].verdict.p for one in findings]
        for finding, q in zip(findings, false_discovery(ps), strict=True):
            contradicted = finding.scales[at_].verdict.kind == CONTRADICTED
            finding.scales[at_] = replace(finding.scales[at_], q=math.nan if contradicted else q)
    return findings


def _plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plan of every scale: of others than its own with what the file says instead of this call."""
    config = plan.config
    file = load_config() if (CONFIG_DIR / "config.yaml").exists() else config
    for name in sorted(scale_names(), key=lambda name: SCALES.index(name) if name in SCALES else -1):
        update = {"scale": name, "shipped": config.shipped}
        yield plan.at((config if name == config.scale else file).model_copy(update=update))


def _at_scale(asked: Question, runs: Evidence) -> AtScale:
    """Return what one scale says of a claim."""
    claim, scale, paper = asked.claim, runs.plan.scale.name, runs.plan.study
    of_paper = [place for place in asked.places if claim.own_data or paper.datasets[_dataset(place)].printed]
    numbers = runs.of(asked.metric)
    effects = asked.effects(numbers, of_paper)
    judged, total = asked.verdict(effects, numbers), len(effects.places)
    stand_in: tuple[str, ...] = ()
    if judged.kind == NOT_RUN and len(numbers):
        elsewhere = _stand_ins(asked, runs, of_paper)
        instead = asked.effects(numbers, elsewhere)
        if (of_others := asked.verdict(instead, numbers)).kind != NOT_RUN:
            effects, judged, total = instead, of_others, total or len(instead.places)
            stand_in = tuple(dict.fromkeys(map(_dataset, elsewhere)))
    ran = judged.kind != NOT_RUN
    if claim.untested and ran:
        judged = replace(judged, kind=NOT_TESTED, p=math.nan)
    read = numbers.iloc[effects.read]
    used = read if ran else read[:0]
    counted = places_with_enough_seeds(effects.values)
    places = [place for place, counts in zip(effects.places, counted, strict=True) if counts]
    longer = agrees_after_longer(asked, runs, of_paper, effects) if len(used) and not stand_in else None
    decided = judged.kind not in (UNDECIDED, NOT_TESTED) and scale != SCALES[-1]
    early = decided and longer is False
    of_ends = asked.measure.matters > 0 and not (claim.ratio and claim.ratio.needs)
    of_ours = [data for data in map(_dataset, places) if claim.own_data and not paper.datasets[data].printed]
    return AtScale(
        scale, replace(judged, kind=UNDECIDED) if early else judged, places, total, stand_in,
        shipped=bool(used["shipped"].any()),
        keys=tuple(sorted({*used["key"]})),
        commits=tuple(sorted({commit for commits in used["commit"] for commit in commits.split()})),
        early=early,
        waiting=int(((~np.isnan(effects.values).any(0)).any(-1) & ~counted).sum()),
        unproven=ran and not stand_in and decided and of_ends and longer is None,
        ours=tuple(dict.fromkeys(of_ours)),
        against=effects.against[judged.against] if effects.against else "",
        diverged=tuple(_diverged(read)) if is_end(asked.metric) else (),
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
    shows = {dataset for target in claim.targets for dataset in shown(paper, target).datasets}
    others = [name for name in runs.datasets if name not in shows]
    planned = {place for place, _ in runs.planned}
    return [
        place for place in places_of(paper, claim.targets, others) if planned.intersection(members(place))
    ]


def _diverged(read: pd.DataFrame) -> Iterator[str]:
    """Name the runs that diverged."""
    lost = read[np.isinf(read["value"])]
    for (method, place), seeds in lost.groupby(["method", "place"], sort=False)["seed"] if len(lost) else ():
        yield f"{method} at {words_of(place)}, seed {', '.join(map(str, seeds))}"
