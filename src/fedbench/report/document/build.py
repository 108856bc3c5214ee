"""A paper's tables and figures as one LaTeX document: ours beside published, scale and provenance in the captions."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fedbench.errors import UserError
from fedbench.jobs.progress import duration
from fedbench.plan.configuration import load_config
from fedbench.plan.plan import Plan
from fedbench.report.document.pdf import compile_source
from fedbench.report.figures.plot import render
from fedbench.report.files import REPORTS, write
from fedbench.report.numbers.logs import FAILED
from fedbench.report.numbers.names import SHIPPED, target_name
from fedbench.report.page.cells import CellView, troubled
from fedbench.report.page.data import Chapter, FigureView, chapter
from fedbench.report.page.states import STATES
from fedbench.report.tables.document import Table
from fedbench.report.tables.latex import details_as_text, numbered
from fedbench.report.tables.latex_text import breakable, escape

log = logging.getLogger(__name__)
TEXT_INCHES = 6.5
VERBATIM = 92
"""Characters in a line of a log or command."""
MOST = 30
"""Cells of one kind of trouble that are listed; the report page has them all."""
FRAME = r"""\documentclass{article}
\usepackage[margin=1in]{geometry}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\usepackage[hidelinks,hypertexnames=false]{hyperref}
\hypersetup{pdftitle={%(title)s},pdfcreator={fedbench},pdfproducer={}}
\setlength{\parindent}{0pt}\setlength{\parskip}{4pt}\emergencystretch=3em
\makeatletter\setlength{\@fptop}{0pt}\makeatother
\renewcommand{\topfraction}{.95}\renewcommand{\floatpagefraction}{.6}\renewcommand{\textfraction}{.03}
\pdfinfoomitdate=1
\pdftrailerid{}
\pdfsuppressptexinfo=-1
\begin{document}
%(body)s\end{document}
"""


def build(plan: Plan) -> Path:
    """Write ``reports/<paper>.pdf`` and return its path; the same results give the same bytes.

    What is too wide or too tall for the page is logged. :class:`UserError` where LaTeX is missing or fails.
    """
    shown = chapter(plan, load_config())
    target = REPORTS / f"{plan.study.key}.pdf"
    content, complaints = compile_source(source(shown), str(target), pictures(shown))
    if content is None:
        raise UserError(f"{target} needs LaTeX; install texlive-latex-recommended and latexmk")
    for complaint in complaints:
        log.warning("%s: %s", target, complaint)
    return write(target, content)


def pictures(shown: Chapter) -> dict[str, bytes]:
    """Return the figures as PDF files."""
    drawn = {f"{f.drawing.name}.pdf": render(f.drawing.plain, "pdf") for f in shown.figures}
    return drawn | ({"claims.pdf": render(shown.claims.forest.picture, "pdf")} if shown.claims else {})


def source(shown: Chapter) -> str:
    """Return the document as LaTeX."""
    parts = [*_head(shown), *_outcome(shown), *_provenance(shown)]
    parts += _claims(shown)
    parts += [r"\clearpage\pdfbookmark[1]{Tables}{tables}"]
    parts += [_table(view.table, shown.scale.name) for view in shown.tables]
    parts += [r"\clearpage\pdfbookmark[1]{Figures}{figures}"] if shown.figures else []
    parts += [_figure(view) for view in shown.figures]
    parts += [r"\clearpage", *_trouble(shown.views), *_details([view.table for view in shown.tables])]
    return FRAME % {"title": escape(shown.paper.title), "body": "\n".join([*parts, ""])}


def _head(shown: Chapter) -> list[str]:
    scale = f"Scale {shown.scale.name}: {shown.scale.description.rstrip('.')}."
    return [
        rf"{{\LARGE\bfseries\raggedright {escape(shown.paper.title)}\par}}",
        rf"{escape(shown.paper.citation)}\par",
        rf"Rebuilt by fedbench, ours beside published. {escape(scale)}\par",
        *([rf"\textbf{{{escape(shown.changed)}.}}\par"] if shown.changed else []),
    ]


def _outcome(shown: Chapter) -> list[str]:
    """Count the verdicts of each table."""
    rows = [(view.table.name, view.states) for view in shown.tables if view.entries]
    names = [name for name in STATES if any(name in counts for _, counts in rows)]
    if not names:
        return []
    head = " & ".join(["Table", *(rf"\rotatebox{{60}}{{{escape(name)}}}" for name in names)])
    lines = [
        " & ".join([escape(target_name(table)), *(str(counts.get(name, 0)) for name in names)]) + r" \\"
        for table, counts in rows
    ]
    shipped = sum(view.shipped for view in shown.tables)
    kept = f"{SHIPPED}: {shipped} of these numbers were not trained here but shipped with the repository."
    return [
        r"\section*{Outcome}",
        rf"\begin{{tabular}}{{l{'r' * len(names)}}}\toprule",
        head + r" \\ \midrule",
        *lines,
        r"\bottomrule\end{tabular}\par",
        r"{\footnotesize "
        + " ".join(rf"\emph{{{escape(n)}}}: {escape(STATES[n].meaning)}." for n in names)
        + r"\par}",
        *([rf"{{\footnotesize {escape(kept)}\par}}"] if shipped else []),
    ]


def _claims(shown: Chapter) -> list[str]:
    """Return the claims of the paper with their forest plot."""
    if shown.claims is None:
        return []
    size = rf"width={TEXT_INCHES}in,height=8.2in,keepaspectratio"
    caption = "Effects behind the claims, each at the scale nearest to the paper of those with three seeds."
    return [
        r"\clearpage\pdfbookmark[1]{Claims}{claims}",
        r"\renewcommand{\thetable}{C}",
        shown.claims.table.tex(),
        r"\renewcommand{\thefigure}{C}",
        r"\begin{figure}[p]\centering",
        rf"\includegraphics[{size}]{{claims.pdf}}",
        rf"\caption{{{escape(caption)}}}",
        r"\end{figure}",
    ]


def _table(table: Table, scale: str) -> str:
    """Return a table with scale and stamp in its caption, numbered as in the paper."""
    stamp = f"{table.provenance['stamp']}."
    scaled = "" if "Scale: " in table.title else f" Scale: {scale}."
    shown = replace(table, title=f"{table.title}{scaled} {stamp[0].upper()}{stamp[1:]}", details=[])
    return numbered("table", table.name) + shown.tex()


def _details(tables: Sequence[Table]) -> list[str]:
    """Return the long notes of all tables; what several say alike is said once."""
    tables_of: dict[str, list[str]] = {}
    for table in tables:
        for note in table.rest:
            if note != f"{table.provenance['stamp']}.":  # the captions have it
                tables_of.setdefault(note, []).append(target_name(table.name))
    if not tables_of:
        return []
    groups: dict[str, list[str]] = {}
    for note, names in tables_of.items():
        groups.setdefault(", ".join(names), []).append(note)
    lines = [
        rf"\textbf{{{escape(names)}}}\par" + "\n" + details_as_text(notes) for names, notes in groups.items()
    ]
    return [r"\section*{Notes to the tables}", *lines]


def _figure(view: FigureView) -> str:
    drawing = view.drawing
    width = min(TEXT_INCHES, drawing.plain.get_figwidth())
    caption = f"{drawing.title}. {drawing.words} {drawing.provenance['stamp']}."
    return numbered("figure", drawing.name) + "\n".join(
        [
            r"\begin{figure}[p]\centering",
            rf"\includegraphics[width={width:.3f}in]{{{drawing.name}.pdf}}",
            rf"\caption{{{escape(caption)}}}",
            r"\end{figure}",
        ]
    )


def _trouble(views: list[CellView]) -> list[str]:
    parts = []
    for name, found in troubled(views).items():
        parts.append(rf"\subsection*{{{escape(name.capitalize())}: {escape(STATES[name].meaning)}}}")
        for view in found[:MOST]:
            lines = view.log.lines if view.log and view.log.says == FAILED else []
            reasons = "" if lines else "; ".join(view.reasons)  # the log's end says it
            parts.append(rf"\textbf{{{escape(view.cell.name)}}} {breakable(reasons)}\par")
            parts.append(_verbatim([*lines, view.command]))
        if len(found) > MOST:
            parts.append(f"And {len(found) - MOST} more; the report page lists them all." + r"\par")
    return [r"\section*{Not finished, and why}", *parts] if parts else []


def _verbatim(lines: Iterable[str]) -> str:
    """Set lines letter for letter, quotes straight: a command can be copied from the document."""
    plain = ["".join(c if " " <= c <= "~" else "?" for c in line) for line in lines]
    wrapped = [part for line in plain for part in textwrap.wrap(line, VERBATIM, break_on_hyphens=False)]
    return "\n".join(
        [
            r"{\footnotesize\ttfamily\raggedright\setlength{\parskip}{0pt}",
            *("".join(map(_letter, line)) + r"\par" for line in wrapped),
            r"\vspace{6pt}}",
        ]
    )


def _letter(c: str) -> str:
    special = {"'": r"\textquotesingle{}", "`": r"\textasciigrave{}", " ": r"\ "}
    return c if c.isalnum() else special.get(c, rf"\char{ord(c)}{{}}")


def _provenance(shown: Chapter) -> list[str]:
    origin = shown.origin
    versions = ", ".join(f"{name} {' and '.join(found)}" for name, found in origin["versions"].items())
    rows = {
        "Code": ", ".join(origin["commits"]) or "nothing run",
        "Hardware": "; ".join(origin["hardware"]) or "–",
        "Versions": versions or "–",
        "Training": f"{duration(origin['training_seconds'])}, {shown.finished} of {shown.wanted} runs on file",
    }
    lines = [rf"\item[{name}] {escape(text)}" for name, text in rows.items()]
    return [r"\section*{Provenance}", r"\begin{description}", *lines, r"\end{description}"]
