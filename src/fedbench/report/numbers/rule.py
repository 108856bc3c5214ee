"""The rule that a number is held against print by, in words: tables, page, document and README say it alike."""

from __future__ import annotations

from fedbench.report.numbers import stats
from fedbench.report.numbers.compare import NO_REFERENCE

LEVEL_TEXT = f"{stats.LEVEL:.0%} interval".replace("%", " %")
INTERVAL = f"{LEVEL_TEXT} of the difference"
MEANING = {
    stats.MATCHES: f"the {INTERVAL} lies within the tolerance",
    stats.BETTER: f"the {INTERVAL} lies outside the tolerance, on the better side",
    stats.WORSE: f"the {INTERVAL} lies outside the tolerance, on the worse side",
    stats.INCONCLUSIVE: f"the {INTERVAL} lies partly within the tolerance, partly outside",
    stats.ONE_SEED: "there is no interval, so the difference alone is held against the tolerance",
    NO_REFERENCE: "the paper has no value for this cell",
}
SYMBOLS = {
    stats.MATCHES: "≈",
    stats.BETTER: "↑",
    stats.WORSE: "↓",
    stats.INCONCLUSIVE: "?",
    stats.ONE_SEED: "¹",
}


def symbol(verdict: stats.Verdict) -> str:
    """Return what stands beside a difference; a verdict on one seed is marked."""
    return SYMBOLS.get(verdict.kind, "") + SYMBOLS.get(verdict.basis, "")


def name(verdict: stats.Verdict) -> str:
    """Name a verdict; on one seed it is a case of its own: ``matches (one seed)``."""
    return f"{verdict.kind} ({verdict.basis})" if verdict.basis else verdict.kind


def seeds(verdict: stats.Verdict) -> str:
    """Say how many seeds would decide an inconclusive number; empty for any other."""
    if verdict.kind != stats.INCONCLUSIVE:
        return ""
    many = f"about {verdict.seeds}" if verdict.seeds else f"more than {stats.MOST_SEEDS}"
    return f"{many} seeds would decide"


def sentences(tolerance: float, several: bool, one: bool, side: str) -> str:
    """Return the rule as a note below a table.

    Args:
        tolerance: the limit of the difference.
        several: whether numbers of several seeds are held against print.
        one: whether numbers of one seed are.
        side: whose seeds the interval is of.
    """
    short = f"the {INTERVAL.replace('the difference', 'Δ')} ({side})"
    rules = [
        f"≈ matches: {short} lies within ±{tolerance:g}. ↑ better, ↓ worse: it lies outside."
        " ? inconclusive: partly within, partly outside."
    ]
    alone = [f"¹ one seed: there is no interval, so Δ alone is held against ±{tolerance:g}."]
    if not several:
        rules = ["≈ matches, ↑ better, ↓ worse."]
    return " ".join([*rules, *alone * one])
