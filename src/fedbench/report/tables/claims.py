"""A paper's claims as a table: what it says, what its own numbers show, and what ours say at every scale."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper
from fedbench.report.files import TABLES, write_forms
from fedbench.report.numbers import described
from fedbench.report.numbers.finding import AtScale, Finding
from fedbench.report.numbers.findings import find
from fedbench.report.numbers.names import ABSENT, SHIPPED
from fedbench.report.tables import latex
from fedbench.report.tables.claim_words import (
    PRINT,
    RULES,
    STAND_IN,
    effect_text,
    said,
    seeds_text,
    strip_text,
)
from fedbench.report.tables.document import stamp
from fedbench.report.tables.latex_text import escape
from fedbench.results.claims.judge import LOST, NOT_TESTED, UNDECIDED, WON
from fedbench.results.places import words_of

NAME = "claims"
WIDTHS = {"claim": 4.1, "in print": 1.2, "scales": 7.0, "effect": 2.4}
"""Of the LaTeX form's columns, in centimetres."""
A_FLOAT = 12
"""Claims in one float of the LaTeX form."""


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

    @property
    def legend(self) -> list[str]:
        """What a call sets, the rules, and what the mark of shipped numbers means."""
        ran = [one for finding in self.findings for one in finding.scales if one.ran]
        rules = (STAND_IN,) if ran and all(one.stand_in for one in ran) else RULES
        mark = [f"{SHIPPED}: not trained here."] if any(one.shipped for one in ran) else []
        return [*([f"{self.changed}."] if self.changed else []), PRINT, *rules, *mark]

    @property
    def remarks(self) -> list[str]:
        """What is fragile, untested, diverged, without results or curves, and the stamp."""
        fragile = [
            f"Claim {one.number} is fragile: {strip_text(one)}." for one in self.findings if one.fragile
        ]
        untested = [
            f"Claim {one.number} is not tested: {one.claim.untested}."
            for one in self.findings
            if one.claim.untested
        ]
        unknown = [*untested, *self._diverged(), *self._missing(), *self._without_curves()]
        return [*fragile, *unknown, f"{self.stamp}."]

    @property
    def notes(self) -> list[str]:
        """All that stands below the table."""
        return [*self.legend, *self.remarks]

    def _diverged(self) -> list[str]:
        """Name the runs that diverged, with the claims that they count in."""
        runs: dict[str, list[str]] = {}
        for one in self.findings:
            for run in dict.fromkeys(run for at in one.scales for run in at.diverged):
                runs.setdefault(run, []).append(str(one.number))
        parts = [f"{run} (claims {', '.join(numbers)})" for run, numbers in runs.items()]
        return [f"Diverged: {'; '.join(parts)}."] if parts else []

    def _missing(self) -> list[str]:
        """Name the tables and figures whose numbers the claims that have not run lack."""
        lacking: dict[str, list[str]] = {}
        for one in self.findings:
            if not any(at.ran for at in one.scales):
                lacking.setdefault(", ".join(one.claim.targets), []).append(str(one.number))
        parts = [f"{', '.join(numbers)} ({targets})" for targets, numbers in lacking.items()]
        return [f"Claims without results: {'; '.join(parts)}."] if parts else []

    def _without_curves(self) -> list[str]:
        """Name the claims with a verdict for which convergence was not checked."""
        numbers = [str(one.number) for one in self.findings if any(at.unproven for at in one.scales)]
        return (
            [f"Convergence not checked (no curves stored): claims {', '.join(numbers)}."] if numbers else []
        )

    @property
    def stamp(self) -> str:
        """What ties the verdicts to code and configuration."""
        used = [one for finding in self.findings for one in finding.scales]
        commits = sorted({commit for one in used for commit in one.commits})
        return stamp(commits, sorted({key for one in used for key in one.keys}))

    def forms(self) -> dict[str, str]:
        """Return what is written, by suffix."""
        return {"tex": self.tex(), "csv": self.csv(), "md": self.markdown(), "json": self.json()}

    def markdown(self) -> str:
        """Return the Markdown form."""
        head = ["", "Claim", "In print", *self.scales, "Decides", "Seeds"]
        rows = [
            [
                str(one.number),
                said(one),
                str(one.printed),
                *(_cell(at, "*", "**") for at in one.scales),
                effect_text(one),
                seeds_text(one),
            ]
            for one in self.findings
        ]
        lines = [head, ["---"] * len(head), *([part.replace("|", "\\|") for part in row] for row in rows)]
        body = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([f"**{self.title}**", "", *body, "", *(f"* {note}" for note in self.notes), ""])

    def terminal(self, remarks: bool = True, width: int = 100) -> str:
        """Return plain text: a paragraph for each claim; without ``remarks`` a line says which command shows them."""
        lines = [self.title, ""]
        for one in self.findings:
            lines += textwrap.wrap(f"{one.number:2d}  {said(one)}", width, subsequent_indent="    ")
            lines.append(f"    in print: {one.printed}")
            lines += [f"    {at.scale}: {_cell(at, '', '')}" for at in one.scales if at.ran]
            lines += [] if any(at.ran for at in one.scales) else ["    not run"]
            if (effect := effect_text(one)) != ABSENT:
                lines.append(f"    decides {effect}; seeds {seeds_text(one)}")
            lines.append("")
        more = self.remarks if remarks else [f"All notes: fedbench claims {self.paper.key} --notes"]
        below = (part for note in [*self.legend, *more] for part in textwrap.wrap(note, width))
        return "\n".join([*lines, *below, ""])

    def tex(self) -> str:
        """Return the LaTeX form; it needs the booktabs package only."""
        heads = ["", "Claim", "In print", *self.scales, "Decides [90 %]; seeds"]
        widths = [
            WIDTHS["claim"],
            WIDTHS["in print"],
            *[round(WIDTHS["scales"] / max(len(self.scales), 1), 2)] * len(self.scales),
            WIDTHS["effect"],
        ]
        begin = [
            r"\scriptsize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{@{{}}r{'l' * len(widths)}@{{}}}}",
            r"\toprule",
            " & ".join(map(escape, heads)) + r" \\",
            r"\midrule",
        ]
        rows = [self._tex_row(one, widths) for one in self.findings]
        pages = [rows[at : at + A_FLOAT] for at in range(0, max(len(rows), 1), A_FLOAT)]
        label = f"tab:{self.paper.key}-{NAME}"
        lines = latex.floats(pages, begin, self.title, self.notes, label)
        return "\n".join([f"% fedbench: {self.paper.key}/{NAME}, {self.stamp}", *lines, ""])

    def _tex_row(self, one: Finding, widths: list[float]) -> str:
        effect = f"{effect_text(one)}; {seeds_text(one)}" if one.main.ran else ABSENT
        texts = [said(one), str(one.printed), *(_cell(at, "", "") for at in one.scales), effect]
        emphasised = {i + 2 for i, at in enumerate(one.scales) if at.stand_in}
        cells = [
            rf"\parbox[t]{{{width}cm}}{{\raggedright\strut "
            + (rf"\emph{{{escape(text)}}}" if i in emphasised else escape(text))
            + r"\strut}"
            for i, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        return " & ".join([str(one.number), *cells]) + r" \\[2pt]"

    def csv(self) -> str:
        """Return one row for each claim and scale, nothing rounded away."""
        rows = [_row(self.paper, finding, at) for finding in self.findings for at in finding.scales]
        return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g", lineterminator="\n")

    def json(self) -> str:
        """Return the provenance: what was asked, by its digest, and the cells behind every answer."""
        asked = [
            {
                "number": one.number,
                "says": one.claim.says,
                "digest": one.claim.digest,
                "verdicts": {at.scale: at.kind for at in one.scales},
                "cells": {at.scale: list(at.keys) for at in one.scales if at.keys},
            }
            for one in self.findings
        ]
        origin = {"paper": self.paper.key, "stamp": self.stamp, "claims": asked}
        return json.dumps(origin, indent=1, ensure_ascii=False) + "\n"


def make(plan: Plan) -> ClaimTable:
    """Hold a paper's claims against all that was measured."""
    words = described.changed(plan.config.set)
    return ClaimTable(plan.study, find(plan), f"Scale {plan.scale.name}: {words}" if words else "")


def build(plan: Plan) -> list[Path]:
    """Write ``tables/<paper>/claims.{tex,csv,md,json}`` and return the paths, the ``.tex`` first."""
    return save(make(plan))


def save(table: ClaimTable) -> list[Path]:
    """Write a table that was made already."""
    return write_forms(TABLES / table.paper.key / NAME, table.forms())


def _cell(at: AtScale, grey: str, bold: str) -> str:
    """Return what one scale says; decided verdicts stand out, stand-ins stand back."""
    mark = SHIPPED if at.shipped and at.ran else ""
    around = (
        grey if at.stand_in else bold if at.ran and at.verdict.kind not in (UNDECIDED, NOT_TESTED) else ""
    )
    return f"{around}{at.words}{around}{mark}"


def _row(paper: Paper, one: Finding, at: AtScale) -> dict[str, object]:
    found = at.verdict
    return {
        "paper": paper.key,
        "claim": one.number,
        "says": one.claim.says,
        "at": one.claim.at,
        "in": " ".join(one.claim.targets),
        "form": one.claim.form,
        "holds": one.rule.holds,
        "margin": one.rule.margin,
        "metric": one.claim.metric,
        "printed_won": one.printed.won,
        "printed_places": one.printed.places,
        "scale": at.scale,
        "verdict": at.kind,
        "stand_in": " ".join(at.stand_in),
        "shown": at.tally.won,
        "won": found.count(WON),
        "lost": found.count(LOST),
        "places": at.tally.places,
        "places_of_claim": at.total,
        "effect": found.whole.mean,
        "low": found.whole.low if found.seeds > 1 else math.nan,
        "high": found.whole.high if found.seeds > 1 else math.nan,
        "decides": "" if at.deciding_place is None else words_of(at.deciding_place),
        "against": at.against,
        "deciding_effect": found.decides.mean,
        "deciding_low": found.decides.low if found.seeds > 1 else math.nan,
        "deciding_high": found.decides.high if found.seeds > 1 else math.nan,
        "diverged": "; ".join(at.diverged),
        "seeds": found.seeds,
        "seeds_needed": at.needed,
        "places_waiting": at.waiting,
        "early": at.early,
        "detectable": found.detectable,
        "p": found.p,
        "q": at.q,
        "p_over_places": found.p_places,
        "fragile": one.fragile,
        "strip": strip_text(one),
        "shipped": at.shipped and at.ran,
        "commits": " ".join(at.commits),
        "digest": one.claim.digest,
        "asked_differently_until": one.changed,
    }
