"""The rule that compares a number with print, in words: tables, page, document and README say it alike."""

from __future__ import annotations

from fedbench.results.statistics import COVERAGE
from fedbench.results.verdicts import ABOVE, BELOW, BOUND, INCONCLUSIVE, MATCHES, NOT_PUBLISHED, ONE_SEED

LEVEL = f"{100 * COVERAGE:g} %"
LEVEL_TEXT = f"{LEVEL} interval"
INTERVAL = f"{LEVEL_TEXT} of the difference"
MEANING = {
    MATCHES: f"the {INTERVAL} lies within the tolerance",
    ABOVE: f"the {INTERVAL} lies outside the tolerance, and our number is the larger one",
    BELOW: f"the {INTERVAL} lies outside the tolerance, and our number is the smaller one",
    INCONCLUSIVE: f"the {INTERVAL} lies partly within the tolerance, partly outside",
    ONE_SEED: "there is no interval, so the difference alone is compared with the tolerance",
    NOT_PUBLISHED: "the paper has no value for this cell",
    BOUND: "the paper prints a theoretical bound; no verdict is given",
}
EDGE = "°"
"""Behind a verdict whose number was made with a tuned value that is the least or largest tried."""
SYMBOLS = {MATCHES: "≈", ABOVE: "↑", BELOW: "↓", INCONCLUSIVE: "?", ONE_SEED: "¹"}


def symbol(verdict: str, basis: str) -> str:
    """Return what stands beside a difference; a verdict on one seed is marked."""
    return SYMBOLS.get(verdict, "") + SYMBOLS.get(basis, "")


def name(verdict: str, basis: str) -> str:
    """Name a verdict; on one seed it is a case of its own: ``matches (one seed)``."""
    return f"{verdict} ({basis})" if basis else verdict


def legend(tolerance: float, interval: bool) -> str:
    """Return the rule as a note below a table, with intervals or for single seeds alone."""
    if not interval:
        return f"Δ = ours − published. ≈: inside ±{tolerance:g}; ↑/↓: outside, higher/lower."
    return (
        f"Δ = ours − published, with a {LEVEL_TEXT}. ≈: interval inside ±{tolerance:g}; ↑/↓: outside, higher/lower; "
        "?: overlaps the limit."
    )
