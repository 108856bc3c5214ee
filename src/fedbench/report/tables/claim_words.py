"""The words of claims: the rules their verdicts follow, effects with their intervals, seeds, and the strip."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from fedbench.plan.schema import Paper
from fedbench.report.numbers.finding import AtScale, Finding
from fedbench.report.numbers.names import ABSENT, GREEK, axis_text, signed
from fedbench.results.claims.effect import Effect
from fedbench.results.claims.needed import MOST
from fedbench.results.places import Place

PRINT = "In print: at how many places the paper's own numbers agree with the claim."
STAND_IN = "Only stand-ins for the paper's datasets have run; they give no verdict."
RULES = (
    "A place (dataset and setting) is won, lost or open by its own test. The verdict is on all places: effects "
    "paired by seed, level 0.05, at least three seeds.",
    "Supported: the effect exceeds the margin; contradicted: it is below 0; not supported: it is smaller than what "
    "matters. A diverged run is lost, a rival's is won.",
    "Decides: the place and rival that determine the verdict, with a 90 % interval. q: false discovery rate. Needed: "
    "seeds for power 0.8. Fragile: the means change direction without one seed, with other constants or after longer "
    "training. Examples: docs/verdicts.md.",
)


def said(finding: Finding) -> str:
    """Return the sentence, where the paper has it, and until when it was asked differently."""
    where = f" ({finding.claim.at})" if finding.claim.at else ""
    return f"{finding.claim.says}{where}" + (
        f" [asked differently until {finding.changed}]" if finding.changed else ""
    )


def effect_text(finding: Finding, paper: Paper) -> str:
    """Return the deciding effect with its interval, where it is and over whom; a ratio as a ratio."""
    at, effect, decimals = finding.main, finding.main.verdict.decides, finding.measure.decimals
    if not at.ran or math.isnan(effect.mean):
        return ABSENT
    where = (
        f" on {', '.join(axis_text(paper, 'dataset', name) for name in at.stand_in)}" if at.stand_in else ""
    )
    if at.deciding_place and len(at.places) > 1:
        where = f" at {place_text(paper, at.deciding_place, at.places)}"
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
    """Return how many seeds there are, how many a verdict needs, and q."""
    if not finding.main.ran:
        return ABSENT
    parts = [str(finding.main.verdict.seeds)]
    if not finding.main.stand_in and finding.main.needed > finding.main.verdict.seeds:
        more = f"about {finding.main.needed:g}" if math.isfinite(finding.main.needed) else f"more than {MOST}"
        parts.append(f"{more} needed")
    parts += [
        "fragile" * finding.main.fragile,
        "" if math.isnan(finding.main.q) else f"q = {finding.main.q:.3f}",
    ]
    return ", ".join(filter(None, parts))


def strip_text(at: AtScale) -> str:
    """Return which ways to read a scale show what is claimed, and which do not."""
    parts = [
        (word, [re.sub(", (.*)", r" (\1)", part) for part, leans in at.strip if leans is way])
        for word, way in (("shown at", True), ("not at", False))
    ]
    return "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names)


def remarks(findings: Sequence[Finding]) -> list[str]:
    """Say which claims are fragile, untested, have runs that diverged, have no results, or no curves."""
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
        *(f"Claim {one.number} is fragile: {strip_text(one.main)}." for one in findings if one.main.fragile),
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
