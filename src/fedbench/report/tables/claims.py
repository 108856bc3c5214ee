"""A paper's claims as a table: what it says, what its own numbers show, and what ours say at every scale."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedbench.plan.schema import Config, Paper
from fedbench.report.files import TABLES, write_forms
from fedbench.report.numbers import described
from fedbench.report.numbers.findings import AtScale, Finding, find
from fedbench.report.numbers.names import ABSENT, SHIPPED, signed
from fedbench.report.numbers.significance import Effect
from fedbench.report.numbers.verdicts import UNDECIDED
from fedbench.report.tables.document import stamp
from fedbench.report.tables.latex_text import escape

NAME = "claims"
WIDTHS = {"claim": 4.1, "in print": 1.2, "scales": 7.0, "effect": 2.4}
"""Of the LaTeX form's columns, in centimetres."""
A_FLOAT = 12
"""Claims in one float of the LaTeX form."""
PRINT = "In print: at how many places (dataset and setting) the paper's own numbers show the sentence."
STAND_IN = "Only datasets that stand in for the paper's have run: they show what the program does and give no verdict."
RULES = (
    "Verdicts: from the 90 % interval of the effect, paired by seed, averaged over places. Supported: above the "
    "margin; contradicted: below 0 (no worse: below minus the margin); not supported: smaller than the margin or than "
    "what matters; undecided: the rest. One seed never gives a verdict, two give an interval; from five, exact "
    "sign flips confirm the t-test; places with fewer than three seeds wait where others have them. Where all places "
    "have to hold, each place and rival has to; a contradiction among many, or one place that is enough, is corrected "
    "(Holm); most places: a bootstrap over seeds, from five on; trends: Page's test.",
    "Curves still move: below scale paper a verdict counts only if the means would lean the same way after as long a "
    "training again, at the pace of its last two fifths (before step sizes fall).",
    "Effect: of the method over the nearest rival, averaged over places, at the scale nearest to the paper of those "
    "with three seeds; in brackets its 90 % interval. Needed: seeds that would find a difference that matters with "
    "power 0.8. Means only: nobody kept the values of the seeds. Fragile: the means lean another way at another scale, "
    "without one of the seeds, with published instead of tuned constants, at the last evaluation instead of the best "
    "by validation (or the other way round), or after as long a training again, as far as measured.",
)


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
    def notes(self) -> list[str]:
        """The rules, where numbers were shipped, and the stamp."""
        shipped = any(one.shipped and one.ran for finding in self.findings for one in finding.scales)
        mark = [f"{SHIPPED}: with numbers that were not trained here but shipped with the repository."]
        changed = [f"{self.changed}."] if self.changed else []
        ran = [one for finding in self.findings for one in finding.scales if one.ran]
        rules = (STAND_IN,) if ran and all(one.stand_in for one in ran) else RULES
        fragile = [
            f"Claim {one.number} is fragile: {strip_text(one)}." for one in self.findings if one.fragile
        ]
        unknown = [*self._missing(), *self._without_curves()]
        notes = [*changed, PRINT, *rules, *fragile, *unknown, *(mark if shipped else [])]
        return [*notes, f"{self.stamp}."]

    def _missing(self) -> list[str]:
        """Name the tables and figures whose numbers the claims that have not run lack."""
        lacking: dict[str, list[str]] = {}
        for one in self.findings:
            if not any(at.ran for at in one.scales):
                lacking.setdefault(", ".join(one.claim.targets), []).append(str(one.number))
        parts = [f"{', '.join(numbers)} ({targets})" for targets, numbers in lacking.items()]
        return [f"Claims not run, for want of numbers: {'; '.join(parts)}."] if parts else []

    def _without_curves(self) -> list[str]:
        """Name the claims with a verdict of which nobody can say whether training was long enough."""
        numbers = [str(one.number) for one in self.findings if any(at.unproven for at in one.scales)]
        words = "Whether training was long enough nobody can say, as curves were not kept: claims"
        return [f"{words} {', '.join(numbers)}."] if numbers else []

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
        head = ["", "Claim", "In print", *self.scales, "Effect", "Seeds"]
        rows = [
            [
                str(one.number),
                f"{one.claim.says} ({one.claim.at})" if one.claim.at else one.claim.says,
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

    def terminal(self, width: int = 100) -> str:
        """Return plain text: a paragraph for each claim."""
        lines = [self.title, ""]
        for one in self.findings:
            at = f" ({one.claim.at})" if one.claim.at else ""
            lines += textwrap.wrap(f"{one.number:2d}  {one.claim.says}{at}", width, subsequent_indent="    ")
            lines.append(f"    in print: {one.printed}")
            lines += [f"    {at.scale}: {_cell(at, '', '')}" for at in one.scales if at.ran]
            lines += [] if any(at.ran for at in one.scales) else ["    not run"]
            if (effect := effect_text(one)) != ABSENT:
                lines.append(f"    effect {effect}; seeds {seeds_text(one)}")
            lines.append("")
        return "\n".join([*lines, *(part for note in self.notes for part in textwrap.wrap(note, width)), ""])

    def tex(self) -> str:
        """Return the LaTeX form; it needs the booktabs package only."""
        heads = ["", "Claim", "In print", *self.scales, "Effect [90 %], seeds"]
        widths = [
            WIDTHS["claim"],
            WIDTHS["in print"],
            *[round(WIDTHS["scales"] / max(len(self.scales), 1), 2)] * len(self.scales),
            WIDTHS["effect"],
        ]
        lines = [f"% fedbench: {self.paper.key}/{NAME}, {self.stamp}"]
        for at in range(0, max(len(self.findings), 1), A_FLOAT):
            caption = r"\caption{(continued)}" if at else rf"\caption{{{escape(self.title)}}}"
            lines += [
                r"\begin{table}[tbp]",
                r"\centering\setlength{\tabcolsep}{3pt}\setlength{\belowcaptionskip}{3pt}",
                *([r"\addtocounter{table}{-1}"] if at else []),
                caption,
                *([] if at else [rf"\label{{tab:{self.paper.key}-{NAME}}}"]),
                r"\scriptsize",
                rf"\begin{{tabular}}{{@{{}}r{'l' * len(widths)}@{{}}}}",
                r"\toprule",
                " & ".join(map(escape, heads)) + r" \\",
                r"\midrule",
                *(self._tex_row(one, widths) for one in self.findings[at : at + A_FLOAT]),
                r"\bottomrule",
                r"\end{tabular}",
            ]
            if at + A_FLOAT >= len(self.findings):
                start = r"\par\vspace{4pt}\begin{minipage}{\linewidth}\scriptsize\raggedright"
                lines += [start, *(escape(note) + r"\par" for note in self.notes), r"\end{minipage}"]
            lines.append(r"\end{table}")
        return "\n".join([*lines, ""])

    def _tex_row(self, one: Finding, widths: list[float]) -> str:
        said = f"{one.claim.says} ({one.claim.at})" if one.claim.at else one.claim.says
        effect = f"{effect_text(one)}; {seeds_text(one)}" if one.main.ran else ABSENT
        texts = [said, str(one.printed), *(_cell(at, "", "") for at in one.scales), effect]
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


def make(paper_key: str, config: Config, root: Path = Path()) -> ClaimTable:
    """Hold a paper's claims against all that was measured."""
    paper, findings = find(paper_key, config, root)
    words = described.changed(config.set)
    return ClaimTable(paper, findings, f"Scale {config.scale}: {words}" if words else "")


def build(paper_key: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``tables/<paper>/claims.{tex,csv,md,json}`` and return the paths, the ``.tex`` first."""
    return save(make(paper_key, config, root), root)


def save(table: ClaimTable, root: Path = Path()) -> list[Path]:
    """Write a table that was made already."""
    return write_forms(root / TABLES / table.paper.key / NAME, table.forms())


def _cell(at: AtScale, grey: str, bold: str) -> str:
    """Return what one scale says; decided verdicts stand out, stand-ins stand back."""
    mark = SHIPPED if at.shipped and at.ran else ""
    around = grey if at.stand_in else bold if at.ran and at.verdict.kind != UNDECIDED else ""
    return f"{around}{at.words}{around}{mark}"


def effect_text(one: Finding) -> str:
    """Return the effect with its interval, a ratio as a ratio."""
    effect, decimals = one.main.verdict.whole, one.measure.decimals
    if not one.main.ran or math.isnan(effect.mean):
        return ABSENT
    where = f" on {', '.join(one.main.stand_in)}" if one.main.stand_in else ""
    if one.claim.ratio:
        effect = _ratio(effect, inverse=one.claim.ratio.at_most is not None)
        mean, *ends = (f"{value:.2f}".replace("inf", "∞") for value in (effect.mean, effect.low, effect.high))
        mean = f"ratio {mean}"
    else:
        mean, *ends = (
            signed(v, decimals) if math.isfinite(v) else "∞" for v in (effect.mean, effect.low, effect.high)
        )
    return (f"{mean} [{ends[0]}, {ends[1]}]" if effect.seeds > 1 else mean) + where


def seeds_text(one: Finding) -> str:
    """Return how many seeds there are, and how many a verdict needs."""
    if not one.main.ran:
        return ABSENT
    needed = None if one.main.stand_in else one.main.verdict.needed
    more = f", {needed} needed" if needed and needed > one.main.verdict.seeds else ""
    fragile = ", fragile" if one.fragile else ""
    means = ", means only" if one.main.means else ""
    return f"{one.main.verdict.seeds}{means}{more}{fragile}"


def strip_text(one: Finding) -> str:
    """Return which parts of the evidence show what is claimed, and which do not."""
    parts = [
        (word, [part for part, leans in one.strip if leans is way])
        for word, way in (("yes", True), ("no", False))
    ]
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)


def _ratio(effect: Effect, inverse: bool) -> Effect:
    """Turn a logarithm into the ratio that the claim speaks of."""
    if inverse:
        return Effect(math.exp(-effect.mean), math.exp(-effect.high), math.exp(-effect.low), effect.seeds)
    return Effect(math.exp(effect.mean), math.exp(effect.low), math.exp(effect.high), effect.seeds)


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
        "won": at.tally.won,
        "places": at.tally.places,
        "places_of_claim": at.total,
        "effect": found.whole.mean,
        "low": found.whole.low if found.seeds > 1 else math.nan,
        "high": found.whole.high if found.seeds > 1 else math.nan,
        "seeds": found.seeds,
        "seeds_needed": found.needed,
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
    }
