"""The LaTeX form of a table. It needs booktabs and nothing else, and fits the page it is meant for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from fedbench.errors import visible
from fedbench.report.numbers.names import ABSENT
from fedbench.report.tables.latex_text import breakable, escape, label_text
from fedbench.report.tables.layout import Block, Entry, Grid, Marks, beside, stacked

SIZES = {"small": (4.7, 11.0), "footnotesize": (4.3, 9.5), "scriptsize": (4.0, 8.0)}
"""Type sizes: the width of a digit and the height of a line in points."""
SPREAD_DIGIT = 3.5
TEXT_WIDTHS = (397.0, 469.0)
"""Points: NeurIPS's text width, then an article's with 1 in margins. The first that fits is taken."""
TEXT_HEIGHT = 560.0
"""Points for the lines and notes of one float; a longer table continues in further ones, block by block."""
DETAIL = "note: "
"""Begins the comment that holds a long note."""
NOTE_LINE = 130
"""Characters of a note in one line of scriptsize."""


def numbered(kind: str, name: str) -> str:
    """Return the line after which the next table or figure has the number in its name, as in the paper."""
    return rf"\renewcommand{{\the{kind}}}{{{escape(name.removeprefix(kind))}}}" + "\n"


def write(grid: Grid, title: str, notes: Sequence[str], label: str, comment: str = "") -> str:
    r"""Return complete ``table`` environments that need ``\usepackage{booktabs}`` and nothing else.

    Ours, paper and difference stand beside each other, or below each other when that would be too wide; a
    table longer than a page continues in further floats of the same number. A table without any run is a caption
    with its notes.
    """
    if not grid.blocks:
        return _caption_alone(title, notes, label, comment)
    fitting = fitting_size(grid)
    size = fitting or "scriptsize"
    begin = [rf"\{size}", *_head(grid, fitting is None)]
    blocks = [_block(block, grid, fitting is None) for block in grid.blocks]
    pages = _pages(blocks, SIZES[size][1], sum(math.ceil(len(note) / NOTE_LINE) * 8.0 + 2 for note in notes))
    rows = [
        [line for i, block in enumerate(page) for line in [r"\addlinespace[3pt]"] * (i > 0) + block]
        for page in pages
    ]
    needs = r"% needs \usepackage{booktabs}"
    return "\n".join([*_comment(comment), needs, *floats(rows, begin, title, notes, label), ""])


def floats(
    pages: Sequence[Sequence[str]], begin: Sequence[str], title: str, notes: Sequence[str], label: str
) -> list[str]:
    """Return the lines of a ``table`` environment for each page of rows, of one number, the notes below the last.

    ``begin`` sets the type and opens the ``tabular``, its head included.
    """
    lines = []
    for number, rows in enumerate(pages):
        continued = [r"\addtocounter{table}{-1}", r"\caption{(continued)}"]
        lines += [
            r"\begin{table}[tbp]",
            r"\centering\setlength{\tabcolsep}{4pt}\setlength{\belowcaptionskip}{3pt}",
            *(continued if number else [rf"\caption{{{escape(title)}}}", rf"\label{{{_reference(label)}}}"]),
            *begin,
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *(_notes(notes) if number == len(pages) - 1 else []),
            r"\end{table}",
        ]
    return lines


def _caption_alone(title: str, notes: Sequence[str], label: str, comment: str) -> str:
    start = r"\begin{table}[tbp]\centering\setlength{\belowcaptionskip}{3pt}"
    lines = [
        start,
        rf"\caption{{{escape(title)}}}",
        rf"\label{{{_reference(label)}}}",
        *_notes(notes),
        r"\end{table}",
    ]
    return "\n".join([*_comment(comment), *lines, ""])


def _comment(text: str) -> list[str]:
    return [f"% {' '.join(visible(text).split())}"] if text else []


def details(notes: Sequence[str]) -> str:
    """Return long notes as comments after a table: :func:`read_details` finds them again."""
    return "".join(f"{line}\n" for note in notes for line in _comment(DETAIL + note))


def read_details(tex: str) -> list[str]:
    """Return the long notes of a table's LaTeX form."""
    mark = f"% {DETAIL}"
    return [line.removeprefix(mark) for line in tex.splitlines() if line.startswith(mark)]


def details_as_text(notes: Sequence[str]) -> str:
    """Return long notes as paragraphs for the end of a document."""
    body = "".join(breakable(note) + r"\par" + "\n" for note in notes)
    return rf"{{\scriptsize\raggedright\setlength{{\parskip}}{{2pt}}{body}}}" + "\n" if notes else ""


def _reference(label: str) -> str:
    """Keep what any LaTeX takes in a label."""
    return re.sub(r"[^\w:.+-]", "-", label, flags=re.ASCII)


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    start = r"\begin{minipage}{\linewidth}\scriptsize\setlength{\parskip}{2pt}\raggedright"
    return [r"\par\vspace{4pt}", start, *(breakable(note) + r"\par" for note in notes), r"\end{minipage}"]


def _pages(blocks: list[list[str]], line_height: float, notes_height: float) -> list[list[list[str]]]:
    """Deal the blocks to as few floats as hold them, evenly, the notes with the last."""
    heights = [len(block) * line_height + 3 for block in blocks]
    share = (sum(heights) + notes_height) / math.ceil((sum(heights) + notes_height) / TEXT_HEIGHT)
    pages: list[list[list[str]]] = [[]]
    filled = 0.0
    for block, height in zip(blocks, heights, strict=True):
        if pages[-1] and filled + height / 2 > share * len(pages):
            pages.append([])
        pages[-1].append(block)
        filled += height
    return pages


def _head(grid: Grid, stacked: bool) -> list[str]:
    """Open the tabular and write its header: the levels of columns, each text centred over what it spans."""
    compares = grid.compares and not stacked
    group = r"l@{\hskip 5pt}l@{\hskip 5pt}r@{\hskip 2pt}l" if compares else "l" if stacked else "r"
    first, span = 1 + stacked, 4 if compares else 1
    tau = grid.has_agreement_column
    lines = [
        rf"\begin{{tabular}}{{@{{}}{'l' * first}{group * len(grid.names)}{'r' * tau}@{{}}}}",
        r"\toprule",
    ]
    for level in grid.headers[: None if compares else -1]:
        cells, rules, start = [""] * first, [], first + 1
        for text, columns in level:
            cells.append(rf"\multicolumn{{{columns * span}}}{{c}}{{{label_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + columns * span - 1}}}")
            start += columns * span
        lines += [" & ".join(cells) + r" \\", " ".join(rules)]
    names = [label_text(text) for text, _ in grid.headers[-1]]
    heads = ["ours", "paper", r"\multicolumn{2}{c}{$\Delta$}"] * len(grid.names) if compares else names
    last = [label_text(grid.stub), *[""] * stacked, *heads, *[r"$\tau$"] * tau]
    return [*lines, " & ".join(last) + r" \\", r"\midrule"]


def _block(block: Block, grid: Grid, below: bool) -> list[str]:
    """Write the lines of a block, the sides ``below`` each other or beside each other.

    The heading stands over the columns at its right, without making any of them wider.
    """
    span = 4 if grid.compares else 1
    heading = [rf"\rlap{{\textbf{{{label_text(block.heading)}}}}} \\"] if block.heading else []
    indent = r"\quad " if block.heading else ""
    lines = (
        stacked(block, _side, escape(ABSENT))
        if below
        else beside(block, lambda entry: entry.sides(LATEX)[:span])
    )
    rows = []
    for label, cells, tau in lines:
        last = [escape(tau)] * grid.has_agreement_column
        if below:
            cells[0] = escape(cells[0])
        rows.append([indent + label_text(label) if label else "", *cells, *last])
    if block.agreement and not below:
        taus = [rf"\multicolumn{{{span}}}{{l}}{{{escape(tau or ABSENT)}}}" for tau in block.agreement]
        rows.append([rf"{indent}\emph{{order}} $\tau$", *taus])
    return [*heading, *(" & ".join(row) + r" \\" for row in rows)]


def _side(entry: Entry, name: str) -> str:
    ours, paper, delta, symbol = entry.sides(LATEX, spread=name != "ours")
    return {"ours": ours, "±": escape(entry.deviation), "paper": paper, "Δ": delta + symbol}[name]


def _small(spread: str) -> str:
    if not spread:
        return ""
    space = r"\," * spread.startswith(" ")
    return space + rf"{{\tiny {escape(spread.strip())}}}"


LATEX = Marks(escape, lambda text: rf"\textbf{{{escape(text)}}}", _small)


def fitting_size(grid: Grid) -> str | None:
    """Choose the largest type that fits a text width, the narrower one first; None if none does."""
    sizes = ((limit, name, digit) for limit in TEXT_WIDTHS for name, (digit, _) in SIZES.items())
    return next((name for limit, name, digit in sizes if _width(grid, digit) <= limit), None)


def _width(grid: Grid, digit: float) -> float:
    """Estimate the width of a table beside whose sides stand, in points."""
    parentheses = 2 * any(grid.cells["line"])
    width = (max(len(row.label) for row in grid.rows) + 2) * digit + 26 * grid.has_agreement_column
    for _, column in grid.cells["entry"].groupby(grid.cells["column"]):
        width += 8 + max(
            (len(e.value) + parentheses + 0.6 * e.best) * digit + len(e.spread) * SPREAD_DIGIT for e in column
        )
        if grid.compares:
            width += max((len(e.printed) + parentheses + 0.6 * e.printed_best) * digit for e in column) + 8
            width += max(len(e.printed_spread) for e in column) * SPREAD_DIGIT
            width += (max(len(e.delta) for e in column) + 2) * digit + 6
    return width
