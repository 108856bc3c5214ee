"""A paper's claims as a table: what it says, what its own numbers show, and what ours say at every scale."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from fedbench.outputs import TABLES, csv_text, json_text, write_forms
from fedbench.report import described
from fedbench.report.document import stamp
from fedbench.report.text import cells_of, document
from fedbench.report.verdict_words import LEVEL_TEXT
from fedbench.results.claims.findings import AtScale, Finding, find
from fedbench.results.claims.judge import (
    CONTRADICTED,
    LOST,
    NOT_TESTED,
    SUPPORTED,
    UNDECIDED,
    UNSUPPORTED,
    WON,
    Effect,
)
from fedbench.results.collect import other_code
from fedbench.results.names import ABSENT, SHIPPED, axis_text, signed
from fedbench.results.places import Place, words_of
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper

PRINT = "Published: in how many settings the paper's own numbers agree with the claim; of an average, whether it does."
STAND_IN = "Only stand-ins for the paper's datasets have run; they give no verdict."
RULES = (
    "Each setting (of a dataset) is won, lost or open by its own test. The verdict is on all settings: effects "
    "paired by seed, level 0.05, at least three seeds.",
    "Supported: the effect exceeds the margin; contradicted: it is below 0; not supported: it is smaller than what "
    "matters. A diverged run is lost, a rival's is won; in an average it counts as its other seeds do.",
    f"Deciding comparison: the one on which the verdict depends, with its {LEVEL_TEXT}. q: false discovery rate. "
    "Examples: docs/background/verdicts.md.",
)
NAME = "claims"


@dataclass(frozen=True)
class ClaimTable:
    """The claims of a paper, ready to be written; ``changed`` says what a call sets in the runs of its scale."""

    paper: Paper
    findings: list[Finding]
    changed: str = ""

    @property
    def title(self) -> str:
        """Its caption."""
        return f"Claims of {self.paper.title}"

    @property
    def scales(self) -> list[str]:
        """The scales, in the order of their columns."""
        return [one.scale for one in self.findings[0].scales] if self.findings else []

    @cached_property
    def _cells(self) -> dict[str, dict[str, Cell]]:
        """The cells with runs of ours behind the verdicts, by scale and name."""
        used: dict[str, dict[str, Cell]] = {scale: {} for scale in self.scales}
        for at in (at for finding in self.findings for at in finding.scales):
            used[at.scale] |= {cell.name: cell for cell in at.cells}
        return used

    @cached_property
    def other_code(self) -> dict[str, dict[str, int]]:
        """How many runs of which cells other code made than today's, at each scale that has any."""
        return {scale: made for scale, cells in self._cells.items() if (made := other_code(cells.values()))}

    @property
    def legend(self) -> list[str]:
        """What a call sets, runs of other code, the rules, and what the mark of reference results means."""
        ran = [one for finding in self.findings for one in finding.scales if one.ran]
        rules = (STAND_IN,) if ran and all(one.stand_in for one in ran) else RULES
        mark = [f"{SHIPPED}: reference results, not trained here."] if any(one.shipped for one in ran) else []
        theirs = self.other_code.items()
        said = [
            f"Scale {at}: {described.other_code([*self._cells[at].values()], made)}" for at, made in theirs
        ]
        return [*([f"{self.changed}."] if self.changed else []), *said, PRINT, *rules, *mark]

    @property
    def remarks(self) -> list[str]:
        """What is untested, diverged, without results or curves, and the stamp."""
        diverged, lacking = dict[str, list[str]](), dict[str, list[str]]()
        for finding in self.findings:
            number, scales = str(finding.number), finding.scales
            for run in dict.fromkeys(run for at in scales for run in at.diverged):
                diverged.setdefault(run, []).append(number)
            if not any(at.ran for at in scales):
                lacking.setdefault(", ".join(finding.claim.targets), []).append(number)
        unproven = (one for one in self.findings if any(at.unproven for at in one.scales))
        unchecked = ", ".join(str(one.number) for one in unproven)
        lists = {
            "Diverged": [f"{run} (claims {', '.join(of)})" for run, of in diverged.items()],
            "Claims without results": [f"{', '.join(of)} ({targets})" for targets, of in lacking.items()],
            "Convergence not checked (no curves stored)": [f"claims {unchecked}"] if unchecked else [],
        }
        untested = (one for one in self.findings if one.claim.untested)
        return [
            *(f"Claim {one.number} is not tested: {one.claim.untested}." for one in untested),
            *(f"{head}: {'; '.join(parts)}." for head, parts in lists.items() if parts),
            f"{self.stamp}.",
        ]

    @property
    def stamp(self) -> str:
        """What ties the verdicts to code and configuration."""
        used = [one for finding in self.findings for one in finding.scales]
        commits = sorted({commit for one in used for commit in one.commits})
        return stamp(commits, sorted({key for one in used for key in one.keys}))

    def texts(self, finding: Finding, grey: str = "", bold: str = "") -> list[str]:
        """Return the row of a claim: sentence and where it stands, print, each scale, what decides, seeds.

        Scales stand between ``bold`` where they decide, between ``grey`` where data stand in.
        """
        at = f" ({finding.claim.at})" if finding.claim.at else ""
        scales = [_cell(at_scale, grey, bold) for at_scale in finding.scales]
        effect, seeds = effect_text(finding, self.paper), seeds_text(finding)
        return [f"{finding.claim.says}{at}", finding.printed.tally, *scales, effect, seeds]

    def forms(self) -> dict[str, str]:
        """Return what is written, by suffix."""
        return {"csv": self.csv(), "md": self.markdown(), "json": self.json()}

    def markdown(self) -> str:
        """Return the Markdown form."""
        head = ["", "Claim", "Published", *self.scales, "Deciding comparison", "Seeds"]
        rows = [[str(one.number), *self.texts(one, "*", "**")] for one in self.findings]
        lines = [head, ["---"] * len(head), *map(cells_of, rows)]
        table = [f"| {' | '.join(line)} |" for line in lines]
        return document(self.title, table, [*self.legend, *self.remarks])

    def terminal(self, remarks: bool = True, scale: str | None = None, width: int = 100) -> str:
        """Return plain text: a paragraph for each claim, of all scales or one, with what decides at each.

        Without ``remarks`` a line says which command shows them.
        """
        lines = [self.title, ""]
        for finding in self.findings:
            sentence, published, *scales, _, _ = self.texts(finding)
            lines += textwrap.wrap(f"{finding.number:2d}  {sentence}", width, subsequent_indent="    ")
            lines.append(f"    published: {published}")
            pairs = zip(finding.scales, scales, strict=True)
            ran = list[str]()
            for at, text in pairs:
                if at.ran and scale in (None, at.scale):
                    ran += [f"{at.scale}: {text}", *self._deciding(finding, at)]
            lines += [*(f"    {line}" for line in ran or ["not run"]), ""]
        more = self.remarks if remarks else [f"All notes: fedbench claims {self.paper.key} --notes"]
        below = (part for note in [*self.legend, *more] for part in textwrap.wrap(note, width))
        return "\n".join([*lines, *below, ""])

    def _deciding(self, finding: Finding, at: AtScale) -> list[str]:
        """Return a line with the comparison that decides at a scale, none where it has no effect."""
        effect = effect_text(finding, self.paper, at)
        if effect == ABSENT:
            return []
        word = "decided by" if at.kind in (SUPPORTED, UNSUPPORTED, CONTRADICTED) else "comparison"
        return [f"{at.scale}, {word} {effect}; seeds {seeds_text(finding, at)}"]

    def csv(self) -> str:
        """Return one row for each claim and scale, nothing rounded away."""
        rows = [_row(self.paper, finding, at) for finding in self.findings for at in finding.scales]
        return csv_text(pd.DataFrame(rows))

    def json(self) -> str:
        """Return the provenance: what was asked, the cells behind every answer, and runs of other code."""
        asked = [
            {
                "number": one.number,
                "says": one.claim.says,
                "verdicts": {at.scale: at.kind for at in one.scales},
                "cells": {at.scale: list(at.keys) for at in one.scales if at.keys},
            }
            for one in self.findings
        ]
        origin = {"paper": self.paper.key, "stamp": self.stamp, "other_code": self.other_code}
        return json_text({**origin, "claims": asked})


def claim_table(plan: Plan) -> ClaimTable:
    """Hold a paper's claims against all that was measured."""
    changed = described.changed(plan.config.set)
    return ClaimTable(plan.study, find(plan), f"Scale {plan.scale.name}: {changed}" if changed else "")


def save(table: ClaimTable) -> list[Path]:
    """Write ``tables/<paper>/claims.{csv,md,json}`` and return the paths."""
    return write_forms(TABLES / table.paper.key / NAME, table.forms())


def _cell(at: AtScale, grey: str, bold: str) -> str:
    """Return what one scale says; decided verdicts stand out, stand-ins stand back."""
    decided = at.ran and at.verdict.kind not in (UNDECIDED, NOT_TESTED)
    around = grey if at.stand_in else bold if decided else ""
    return f"{around}{at.words}{around}{SHIPPED if at.shipped and at.ran else ''}"


def _row(paper: Paper, finding: Finding, at: AtScale) -> dict[str, object]:
    """Return the row of a claim and a scale in the CSV: the question, the published numbers' answer, the scale's.

    Intervals take two seeds.
    """
    claim, verdict = finding.claim, at.verdict

    def ends(effect: Effect, *names: str) -> dict[str, float]:
        low, high = (effect.low, effect.high) if effect.seeds > 1 else (math.nan, math.nan)
        return dict(zip(names, (effect.mean, low, high), strict=True))

    return {
        "paper": paper.key, "claim": finding.number, "says": claim.says, "at": claim.at,
        "in": " ".join(claim.targets), "form": claim.form, "holds": finding.rule.holds,
        "margin": finding.rule.margin, "metric": claim.metric, "printed_won": finding.printed.shown,
        "printed_places": finding.printed.asked, "scale": at.scale, "verdict": at.kind,
        "stand_in": " ".join(at.stand_in), "shown": verdict.shown, "won": verdict.count(WON),
        "lost": verdict.count(LOST), "places": len(verdict.outcomes), "places_of_claim": at.total,
        **ends(verdict.overall, "effect", "low", "high"),
        "decides": "" if at.deciding_place is None else words_of(at.deciding_place), "against": at.against,
        **ends(verdict.decides, "deciding_effect", "deciding_low", "deciding_high"),
        "diverged": "; ".join(at.diverged), "seeds": verdict.seeds, "places_waiting": at.waiting,
        "early": at.early, "detectable": verdict.detectable, "p": verdict.p, "q": at.q,
        "shipped": at.shipped and at.ran, "commits": " ".join(at.commits),
    }  # fmt: skip


def effect_text(finding: Finding, paper: Paper, at: AtScale | None = None) -> str:
    """Return the deciding effect with its interval, where it is and over whom, by default at the scale that decides.

    A ratio is written as a ratio.
    """
    at = at or finding.main
    effect, ratio = at.verdict.decides, finding.claim.ratio
    if not at.ran or math.isnan(effect.mean):
        return ABSENT
    mean, *ends = effect.mean, effect.low, effect.high
    if ratio:  # effects are logarithms, of the inverse where the claim gives the most that it may be
        sign = 1 if ratio.at_most is None else -1
        mean, *ends = (math.exp(sign * number) for number in (mean, *ends))
    decimals = finding.measure.decimals

    def written(number: float) -> str:
        if math.isinf(number):
            return "∞" if number > 0 else "−∞"
        return f"{number:.2f}" if ratio else signed(number, decimals)

    value, *interval = map(written, (mean, *sorted(ends)))
    where = ", ".join(axis_text(paper, "dataset", name) for name in at.stand_in)
    if at.deciding_place and len(at.places) > 1:
        where = place_text(paper, at.deciding_place, at.places)
    rival = axis_text(paper, "method", at.against) if at.against in paper.methods else at.against
    parts = [
        "ratio" if ratio else "",
        value,
        f"[{', '.join(interval)}]" if effect.seeds > 1 else "",
        f"on {where}" if where else "",
        f"({rival})" if rival else "",
    ]
    return " ".join(filter(None, parts))


def place_text(paper: Paper, place: Place, places: Sequence[Place]) -> str:
    """Name a place by its dataset and the settings in which places differ, as tables name them."""
    differing = [pair for i, pair in enumerate(place) if i and len({other[i] for other in places}) > 1]
    return ", ".join(axis_text(paper, *pair) for pair in (place[0], *differing))


def seeds_text(finding: Finding, at: AtScale | None = None) -> str:
    """Return how many seeds the deciding effect has, and q, by default at the scale that decides."""
    at = at or finding.main
    if not at.ran:
        return ABSENT
    q = "" if math.isnan(at.q) else f", q = {at.q:.3f}"
    return f"{at.verdict.decides.seeds}{q}"
