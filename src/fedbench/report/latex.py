r"""The LaTeX form of a table, never wider than the text around it, and its numbers as macros, which are never stale.

The table needs booktabs and graphicx; a text says ``\fedbench{study/table/dataset/setting/method}``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from fedbench.errors import visible
from fedbench.report.layout import Entry, Grid, Marks
from fedbench.results.frame import FINISHED, INCOMPLETE, Compared
from fedbench.results.names import ABSENT, SHIPPED, value_text
from fedbench.results.verdicts import NOT_PUBLISHED

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
    begin, lines = [size, *_head(grid)] if blocks else [], []
    label = re.sub(r"[^\w:.+-]", "-", label, flags=re.ASCII)  # any LaTeX takes what is left
    for number, rows in enumerate(pages or [[]]):
        caption = [rf"\caption{{{escape(title)}}}", rf"\label{{{label}}}"]
        lines += [
            r"\begin{table}[tbp]",
            r"\centering\setlength{\tabcolsep}{4pt}\setlength{\belowcaptionskip}{3pt}",
            *([r"\addtocounter{table}{-1}", r"\caption{(continued)}"] if number else caption),
            *([*begin, *rows, r"\bottomrule", r"\end{tabular}}"] if begin else []),
            *(_notes(notes) if number >= len(pages) - 1 else []),
            r"\end{table}",
        ]
    return "\n".join([*_comment(comment), NEEDS, *lines, ""])


def _comment(text: str) -> list[str]:
    return [f"% {' '.join(visible(text).split())}"] if text else []


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    start = r"\begin{minipage}{\linewidth}\scriptsize\setlength{\parskip}{2pt}\raggedright"
    return [r"\par\vspace{4pt}", start, *(breakable(note) + r"\par" for note in notes), r"\end{minipage}"]


def _head(grid: Grid) -> list[str]:
    """Open the tabular and write its header: the levels of columns, each text centred over what it spans."""
    first, span = len(grid.stubs), grid.span
    group = r"l@{\hskip 5pt}l@{\hskip 5pt}l" if span > 1 else "l" if grid.wide else "r"
    lines = [FITTED, rf"\begin{{tabular}}{{@{{}}{'l' * first}{group * len(grid.names)}@{{}}}}", r"\toprule"]
    for level in grid.headers[: None if span > 1 else -1]:
        cells, rules, start = [""] * first, [], first + 1
        for text, columns in level:
            cells.append(rf"\multicolumn{{{columns * span}}}{{c}}{{{label_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + columns * span - 1}}}")
            start += columns * span
        lines += [" & ".join(cells) + r" \\", " ".join(rules)]
    names = [label_text(text) for text, _ in grid.headers[-1]]
    heads = ["ours", "paper", r"$\Delta$"] * len(names) if span > 1 else names
    last = " & ".join([*map(label_text, grid.stubs), *heads])
    return [*lines, rf"{last} \\", r"\midrule"]


def _rows(lines: Sequence[Sequence[str]]) -> list[str]:
    """Write the lines of a block, indented below a heading."""
    indent = r"\quad " if len(lines[0]) == 1 else ""
    return [(indent if row[0] and row[1:] else "") + " & ".join(row) + r" \\" for row in lines]


def _small(spread: str) -> str:
    if not spread:
        return ""
    space = r"\," if spread.startswith(" ") else ""
    return rf"{space}{{\tiny {escape(spread.strip())}}}"


SYMBOLS = """
Δ Delta ∆ Delta Γ Gamma Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Φ Phi Ψ Psi Ω Omega α alpha β beta γ gamma δ delta ε epsilon
ζ zeta η eta θ theta ι iota κ kappa λ lambda μ mu ν nu ξ xi π pi ρ rho σ sigma τ tau υ upsilon φ phi χ chi ψ psi ω omega
± pm ∓ mp × times ÷ div · cdot ⋅ cdot ∗ ast ∘ circ • bullet ⊕ oplus ⊗ otimes ⊙ odot √ surd ∂ partial ∇ nabla ∑ sum
∏ prod ∫ int ∞ infty ℓ ell ≤ leq ≥ geq ≠ neq ≡ equiv ≈ approx ≃ simeq ≅ cong ∼ sim ∝ propto ≪ ll ≫ gg ∈ in ∉ notin
∅ emptyset ⊂ subset ⊆ subseteq ∪ cup ∩ cap ∧ wedge ∨ vee ¬ neg ∀ forall ∃ exists ‖ Vert ∥ parallel ⟨ langle ⟩ rangle
↑ uparrow ↓ downarrow → rightarrow ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow
"""
"""Characters that are a command of mathematics, each before its command."""
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#",
    "$": r"\$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "[": "{[}", "*": "{*}",  # at the start of a row they would belong to the end of the one before
    '"': "''", "“": "``", "”": "''", "„": ",,", "«": "``", "»": "''", "‘": "`", "’": "'", "‚": ",", "‹": "`",
    "›": "'", "′": "$'$", "…": r"\dots{}", "–": "--", "—": "---", "‐": "-", "−": "$-$", "⁻": "$^-$", "⁄": "/",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "°": r"$^\circ$", "§": r"\S{}", "©": r"\copyright{}",
    "£": r"\pounds{}", "€": "EUR", "¿": "?`", "¡": "!`", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h",
    "Ħ": "H", "þ": "th", "Þ": "Th", "ŋ": "ng", "Ŋ": "Ng", "ŧ": "t", "Ŧ": "T", "ĸ": "k",
    **{character: f"$^{power}$" for power, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{character: f"$_{index}$" for index, character in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{character: rf"$\{name}$" for character, name in re.findall(r"(\S) (\w+)", SYMBOLS)},
}  # fmt: skip
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
LETTERS = {
    letter
    for letter in map(chr, range(0xC0, 0x180))
    if letter in "ßæÆøØœŒłŁı" or unicodedata.normalize("NFD", letter)[1:] in tuple(_ACCENTS)
}
"""Letters beyond ASCII that TeX's first font encoding (OT1) has, or makes with an accent; an ogonek it lacks."""


def escape(text: str) -> str:
    r"""Make any text printable: ``LocalSGDM_RL`` and ``100 %`` as well as ``±`` and ``ρ``.

    Line breaks and other blanks become one space: a blank line would end a caption. A letter that the fonts lack
    becomes its base letter, any other such character a question mark. A straight quotation mark opens before a word,
    and a hyphen before a number is a minus.
    """
    line = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
    line = re.sub(r'(?<![^\s(\[])"(?=\w)', "“", line)
    line = re.sub(r"(?<![^\s(\[])-(?=\d)", "−", line)
    parts = ["".join(map(_printable, part)) for part in line.split("--")]
    return "-{}-".join(parts)  # two hyphens stay two: the ligature would make an option's name a dash


def _printable(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if " " <= character <= "~" or character in LETTERS:
        return character
    if unicodedata.category(character) in ("Mn", "Cf"):  # an accent alone, or a mark that is not seen
        return ""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(SPECIAL.get(part, part if " " <= part <= "~" else "") for part in parts) or "?"


def label_text(text: str) -> str:
    """Escape a heading, setting "p = 4" and other one-letter settings in mathematics."""
    parts = re.split(r"\b([A-Za-z] = -?[0-9.]+)", text)
    return "".join(f"${part}$" if i % 2 else escape(part) for i, part in enumerate(parts))


def breakable(text: str) -> str:
    r"""Escape text, let a line end within paths and other long words, and set what stands between backticks as code."""
    line = re.sub(r"\S{25,}", lambda word: re.sub(r"(/|\\_)", r"\1\\allowbreak{}", word[0]), escape(text))
    return re.sub(r"`(.+?)`", r"\\texttt{\1}", line)


LATEX = Marks(
    escape,
    label_text,
    # over the columns at its right, without making any of them wider
    heading=lambda text: rf"\rlap{{\textbf{{{label_text(text)}}}}}",
    best=lambda text: rf"\textbf{{{escape(text)}}}",
    spread=_small,
)


COMMANDS = r"""\providecommand{\fedbench}[1]{\ifcsname fedbench/\detokenize{#1}\endcsname
  \csname fedbench/\detokenize{#1}\endcsname\else\errmessage{fedbench: there is no number \detokenize{#1}}\fi}
\providecommand{\fedbenchnumber}[2]{\expandafter\gdef\csname fedbench/\detokenize{#1}\endcsname{#2}}
\providecommand{\fedbenchnone}[2]{\fedbenchnumber{#1}{\errmessage{fedbench: no number \detokenize{#1}: #2}}}
"""
"""What reads and defines a number; ``\\fedbench`` expands to digits alone, so that siunitx and mathematics take it."""


def macros_text(address: str, entries: Sequence[Entry], comment: str) -> str:
    r"""Return the file that defines the numbers of a table, to be read with ``\input``.

    Args:
        address: ``study/table``, with which each key begins.
        entries: the places of the table; those that hold no number of a cell are left out.
        comment: the line that says where the numbers come from.

    A key goes on with the dataset, each setting that the table varies, the method, and the metric where there are
    several; after it a part may follow, as :func:`_parts` names them. What is not there is an error that says why.
    """
    shown = [(entry, entry.item) for entry in entries if entry.item is not None]
    items = [item for _, item in shown]
    axes = [
        axis
        for axis in (items[0].at if items else {})
        if axis in ("dataset", "method") or len({item.at[axis] for item in items}) > 1
    ]
    several = len({item.metric for item in items}) > 1
    lines = []
    for entry, item in shown:
        key = "/".join([address, *(value_text(item.at[axis]) for axis in axes)])
        if several:
            key += f"/{item.metric}"
        for part, number, why in _parts(entry, item):
            name = f"{key}/{part}" if part else key
            lines.append(
                rf"\fedbenchnumber{{{name}}}{{{number}}}" if number else rf"\fedbenchnone{{{name}}}{{{why}}}"
            )
    return "\n".join([*_comment(comment), COMMANDS + "\n".join(lines), ""])


def _parts(entry: Entry, item: Compared) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each part of a place, its text as the table shows it, and why there is none."""
    if entry.part:
        yield entry.part, entry.value.partition(" ")[0].replace("–", "--"), ""
        return
    why = item.status
    finished = why == FINISHED
    if why == INCOMPLETE:  # a part of the seeds is no result: a text would not say that it is one
        why = f"{item.n_seeds} of {item.n_wanted} seeds"
    spread = entry.spread.partition(" ")[0].removeprefix("±")
    yield "", entry.value.rstrip(SHIPPED).replace("−", "-") if finished else "", why
    yield "std", spread if finished else "", "one seed" if finished else why
    yield "seeds", str(item.n_seeds) if finished else "", why
    yield "scale", item.scale if finished else "", why
    yield "paper", entry.printed.replace(ABSENT, ""), NOT_PUBLISHED
    yield "difference", entry.delta.replace("−", "-"), item.verdict
    yield "verdict", item.verdict, ""
