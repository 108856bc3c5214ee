"""The words of claims: the rules their verdicts follow, effects with their intervals, and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fedbench.results.claims.findings import Finding
from fedbench.results.claims.judge import Effect
from fedbench.results.names import ABSENT, GREEK, axis_text, signed
from fedbench.results.places import Place
from fedbench.study.schema import Paper

PRINT = "Published: in how many settings the paper's own numbers agree with the claim; of an average, whether it does."
STAND_IN = "Only stand-ins for the paper's datasets have run; they give no verdict."
RULES = (
    "Each setting (of a dataset) is won, lost or open by its own test. The verdict is on all settings: effects "
    "paired by seed, level 0.05, at least three seeds.",
    "Supported: the effect exceeds the margin; contradicted: it is below 0; not supported: it is smaller than what "
    "matters. A diverged run is lost, a rival's is won.",
    "Deciding comparison: the one on which the verdict depends, with its 90 % interval. q: false discovery rate. "
    "Examples: docs/background/verdicts.md.",
)


def said(finding: Finding) -> str:
    """Return the sentence, and where the paper has it."""
    return finding.claim.says + (f" ({finding.claim.at})" if finding.claim.at else "")


def effect_text(finding: Finding, paper: Paper) -> str:
    """Return the deciding effect with its interval, where it is and over whom; a ratio as a ratio."""
    at, effect, decimals = finding.main, finding.main.verdict.decides, finding.measure.decimals
    if not at.ran or math.isnan(effect.mean):
        return ABSENT
    where = (
        f" on {', '.join(axis_text(paper, 'dataset', name) for name in at.stand_in)}" if at.stand_in else ""
    )
    if at.deciding_place and len(at.places) > 1:
        where = f" on {place_text(paper, at.deciding_place, at.places)}"
    rival = f" ({axis_text(paper, 'method', at.against) if at.against in paper.methods else at.against})"
    if finding.claim.ratio:
        effect = _ratio(effect, inverse=finding.claim.ratio.at_most is not None)
    mean, low, high = (
        "−" * (v < 0) + "∞" if math.isinf(v) else f"{v:.2f}" if finding.claim.ratio else signed(v, decimals)
        for v in (effect.mean, effect.low, effect.high)
    )
    interval = f" [{low}, {high}]" if effect.seeds > 1 else ""
    return f"{'ratio ' if finding.claim.ratio else ''}{mean}{interval}{where}{rival if at.against else ''}"


def place_text(paper: Paper, place: Place, places: Sequence[Place]) -> str:
    """Name a place by its dataset and the settings in which places differ, these by their letters or keys."""
    differing = [pair for i, pair in enumerate(place) if i and len({other[i] for other in places}) > 1]
    texts = [f"{GREEK.get(name, name)} = {value}" for name, value in differing]
    return ", ".join([axis_text(paper, "dataset", place[0][1]), *texts])


def seeds_text(finding: Finding) -> str:
    """Return how many seeds there are, and q."""
    if not finding.main.ran:
        return ABSENT
    q = "" if math.isnan(finding.main.q) else f", q = {finding.main.q:.3f}"
    return f"{finding.main.verdict.seeds}{q}"


def remarks(findings: Sequence[Finding]) -> list[str]:
    """Say which claims are untested, have runs that diverged, have no results, or no curves."""
    diverged = _claims_of(findings, lambda finding: [run for at in finding.scales for run in at.diverged])
    lacking = _claims_of(
        findings,
        lambda finding: [] if any(at.ran for at in finding.scales) else [", ".join(finding.claim.targets)],
    )
    unchecked = _claims_of(
        findings, lambda finding: ["claims"] if any(at.unproven for at in finding.scales) else []
    )
    lists = {
        "Diverged": [f"{run} (claims {numbers})" for run, numbers in diverged.items()],
        "Claims without results": [f"{numbers} ({targets})" for targets, numbers in lacking.items()],
        "Convergence not checked (no curves stored)": [" ".join(pair) for pair in unchecked.items()],
    }
    return [
        *(
            f"Claim {one.number} is not tested: {one.claim.untested}."
            for one in findings
            if one.claim.untested
        ),
        *(f"{head}: {'; '.join(parts)}." for head, parts in lists.items() if parts),
    ]


def _claims_of(findings: Sequence[Finding], texts: Callable[[Finding], Sequence[str]]) -> dict[str, str]:
    """Return the numbers of the claims that a text is said of."""
    numbers: dict[str, list[str]] = {}
    for finding in findings:
        for text in dict.fromkeys(texts(finding)):
            numbers.setdefault(text, []).append(str(finding.number))
    return {text: ", ".join(of) for text, of in numbers.items()}


def _ratio(effect: Effect, inverse: bool) -> Effect:
    """Turn a logarithm into the ratio that the claim speaks of."""
    if inverse:
        return Effect(math.exp(-effect.mean), math.exp(-effect.high), math.exp(-effect.low), effect.seeds)
    return Effect(math.exp(effect.mean), math.exp(effect.low), math.exp(effect.high), effect.seeds)
