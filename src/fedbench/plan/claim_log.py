"""The log of claims: what was asked when, and why it was changed, beside the claims themselves."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

LOG = Path("config", "claims.csv")


@dataclass(frozen=True)
class Logged:
    """One form of a claim.

    Attributes:
        date: when it was asked first.
        paper: the study.
        digest: of what is asked (:attr:`fedbench.plan.claims.ClaimSpec.digest`).
        replaces: the digest of the form before, empty for a first one.
        after_results: whether that had numbers when it was changed.
        reason: why it was changed, or the source of a first form.
    """

    date: str
    paper: str
    digest: str
    replaces: str
    after_results: bool
    reason: str


def read_log() -> list[Logged]:
    """Read the log of a project, empty where it has none."""
    if not LOG.is_file():
        return []
    with LOG.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [Logged(after_results=row.pop("after_results") == "yes", **row) for row in rows]


def asked_differently_until(log: list[Logged], paper: str, digest: str) -> str:
    """Return the date of the last change of a claim that was made after its numbers were there; empty without one."""
    forms = {one.digest: one for one in log if one.paper == paper}
    while (form := forms.get(digest)) is not None:
        if form.after_results:
            return form.date
        digest = form.replaces
    return ""
