"""The LaTeX form of a table. It needs booktabs and graphicx, and is never wider than the text around it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fedbench.errors import visible
from fedbench.report.latex_text import breakable, escape, label_text
from fedbench.report.layout import Grid, Marks

LINES = 54
"""Of a table in one float; a longer one continues in further floats, block by block."""
NEEDS = r"% needs \usepackage{booktabs,graphicx}"
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Begins what is made narrower where it is wider than a line."""


def latex_table(grid: Grid, title: str, notes: Sequence[str], label: str, comment: str = "") -> str:
    r"""Return complete ``table`` environments that need ``\usepackage{booktabs,graphicx}`` and nothing else.

    Ours, paper and difference stand beside each other, or below each other when that would be too wide; a
    table longer than a page continues in further floats of the same number. A table without any run is a caption
    with its notes.
    """
    blocks, pages = [*map(_rows, grid.lines(LATEX))], list[list[str]]()
    for block in blocks:
        if not pages or len(pages[-1]) + len(block) > LINES:
            pages.append(block)
        else:
            pages[-1] += [r"\addlinespace[3pt]", *block]
    size = r"\scriptsize" if grid.wide else r"\footnotesize"
    begin = [size, *_head(grid)] if blocks else []
    return "\n".join([*_comment(comment), NEEDS, *floats(pages or [[]], begin, title, notes, label), ""])


def floats(
    pages: Sequence[Sequence[str]], begin: Sequence[str], title: str, notes: Sequence[str], label: str
) -> list[str]:
    """Return the lines of a ``table`` environment for each page of rows, of one number, the notes below the last.

    ``begin`` sets the type and opens the ``tabular``, its head included; it is empty where there are no rows.
    """
    lines = []
    for number, rows in enumerate(pages):
        caption = [rf"\caption{{{escape(title)}}}", rf"\label{{{_reference(label)}}}"]
        lines += [
            r"\begin{table}[tbp]",
            r"\centering\setlength{\tabcolsep}{4pt}\setlength{\belowcaptionskip}{3pt}",
            *([r"\addtocounter{table}{-1}", r"\caption{(continued)}"] if number else caption),
            *([*begin, *rows, r"\bottomrule", r"\end{tabular}}"] if begin else []),
            *(_notes(notes) if number == len(pages) - 1 else []),
            r"\end{table}",
        ]
    return lines


def _comment(text: str) -> list[str]:
    return [f"% {' '.join(visible(text).split())}"] if text else []


def _reference(label: str) -> str:
    """Keep what any LaTeX takes in a label."""
    return re.sub(r"[^\w:.+-]", "-", label, flags=re.ASCII)


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    start = r"\begin{minipage}{\linewidth}\scriptsize\setlength{\parskip}{2pt}\raggedright"
    return [r"\par\vspace{4pt}", start, *(breakable(note) + r"\par" for note in notes), r"\end{minipage}"]


def _head(grid: Grid) -> list[str]:
    """Open the tabular and write its header: the levels of columns, each text centred over what it spans."""
    first, span = 1 + grid.wide, grid.span
    group = r"l@{\hskip 5pt}l@{\hskip 5pt}l" if span > 1 else "l" if grid.wide else "r"
    lines = [
        FITTED,
        rf"\begin{{tabular}}{{@{{}}{'l' * first}{group * len(grid.names)}@{{}}}}",
        r"\toprule",
    ]
    for level in grid.headers[: None if span > 1 else -1]:
        cells, rules, start = [""] * first, [], first + 1
        for text, columns in level:
            cells.append(rf"\multicolumn{{{columns * span}}}{{c}}{{{label_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + columns * span - 1}}}")
            start += columns * span
        lines += [" & ".join(cells) + r" \\", " ".join(rules)]
    names = [label_text(text) for text, _ in grid.headers[-1]]
    heads = ["ours", "paper", r"$\Delta$"] * len(names) if span > 1 else names
    last = [label_text(grid.stub), *[""] * grid.wide, *heads]
    return [*lines, " & ".join(last) + r" \\", r"\midrule"]


def _rows(lines: Sequence[Sequence[str]]) -> list[str]:
    """Write the lines of a block, indented below a heading."""
    indent = r"\quad " if len(lines[0]) == 1 else ""
    return [(indent if row[0] and row[1:] else "") + " & ".join(row) + r" \\" for row in lines]


def _small(spread: str) -> str:
    space = r"\," * spread.startswith(" ")
    return space + rf"{{\tiny {escape(spread.strip())}}}" if spread else ""


LATEX = Marks(
    escape,
    label_text,
    # over the columns at its right, without making any of them wider
    heading=lambda text: rf"\rlap{{\textbf{{{label_text(text)}}}}}",
    best=lambda text: rf"\textbf{{{escape(text)}}}",
    spread=_small,
)
