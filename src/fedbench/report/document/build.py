"""A paper's tables and figures as one LaTeX document: ours beside published, scale and provenance in the captions."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fedbench.errors import UserError
from fedbench.jobs.progress import duration
from fedbench.plan.plan import Plan
from fedbench.report.document.pdf import compile_source, installed
from fedbench.report.figures import claims as forest
from fedbench.report.figures.plot import render
from fedbench.report.files import REPORTS, write
from fedbench.report.numbers.names import SHIPPED, target_name
from fedbench.report.page.cells import troubled
from fedbench.report.page.data import Chapter, chapter
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


def build(plan: Plan) -> Path:
    """Write ``reports/<paper>.pdf`` and return its path; the same results give the same bytes.

    What is too wide or too tall for the page is logged. :class:`UserError` where LaTeX is missing or fails.
    """
    target = REPORTS / f"{plan.study.key}.pdf"
    if not installed():
        raise UserError(f"{target} needs LaTeX; install texlive-latex-recommended and latexmk")
    shown = chapter(plan)
    content, complaints = compile_source(source(shown), str(target), pictures(shown))
    for complaint in complaints:
        log.warning("%s: %s", target, complaint)
    return write(target, content)


def pictures(shown: Chapter) -> dict[str, bytes]:
    """Return the figures as PDF files."""
    drawn = {f"{drawing.name}.pdf": render(drawing.plain, "pdf") for drawing in shown.figures}
    return drawn | ({"claims.pdf": render(forest.draw(shown.claims).picture, "pdf")} if shown.claims else {})


def source(shown: Chapter) -> str:
    """Return the document as LaTeX."""
    environment = Environment(
        loader=PackageLoader("fedbench.report.document", "."), undefined=StrictUndefined, trim_blocks=True,
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", line_statement_prefix="%%", keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "tex": escape, "breakable": breakable, "name": target_name, "numbered": numbered, "duration": duration,
        "letters": letters,
    }  # fmt: skip
    names = {name for view in shown.tables for name in view.states}
    shipped = sum(view.shipped for view in shown.tables)
    kept = f"{SHIPPED}: {shipped} of these numbers were not trained here but shipped with the repository."
    return environment.get_template("document.tex").render(
        shown=shown,
        study=shown.paper,
        scale=f"Scale {shown.scale.name}: {shown.scale.description.rstrip('.')}.",
        states=[state for name, state in STATES.items() if name in names],
        shipped=kept if shipped else "",
        origin=shown.origin,
        versions=", ".join(f"{name} {' and '.join(ways)}" for name, ways in shown.origin["versions"].items()),
        tables=[_stamped(view.table, shown.scale.name) for view in shown.tables],
        troubled=[(STATES[name], views) for name, views in troubled(shown.views).items()],
        details=[*_details([view.table for view in shown.tables])],
        inches=TEXT_INCHES,
        most=MOST,
    )


def _stamped(table: Table, scale: str) -> Table:
    """Return a table with scale and stamp in its caption, and no long notes."""
    stamp = f"{table.provenance['stamp']}."
    scaled = "" if "Scale: " in table.title else f" Scale: {scale}."
    return replace(table, title=f"{table.title}{scaled} {stamp[0].upper()}{stamp[1:]}", details=[])


def _details(tables: Sequence[Table]) -> Iterator[tuple[str, str]]:
    """Yield the long notes of all tables after the names of the tables; what several say alike is said once."""
    tables_of: dict[str, list[str]] = {}
    for table in tables:
        for note in table.rest:
            if note != f"{table.provenance['stamp']}.":  # the captions have it
                tables_of.setdefault(note, []).append(target_name(table.name))
    for names in dict.fromkeys(map(", ".join, tables_of.values())):
        yield names, details_as_text([note for note, of in tables_of.items() if ", ".join(of) == names])


def letters(lines: Iterable[str]) -> list[str]:
    """Wrap lines and set them letter for letter, quotes straight: a command can be copied from the document."""
    plain = ["".join(c if " " <= c <= "~" else "?" for c in line) for line in lines]
    wrapped = [part for line in plain for part in textwrap.wrap(line, VERBATIM, break_on_hyphens=False)]
    return ["".join(map(_letter, line)) for line in wrapped]


def _letter(c: str) -> str:
    special = {"'": r"\textquotesingle{}", "`": r"\textasciigrave{}", " ": r"\ "}
    return c if c.isalnum() else special.get(c, rf"\char{ord(c)}{{}}")
