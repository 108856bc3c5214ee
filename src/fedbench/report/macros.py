r"""The numbers of a table as LaTeX macros: ``\fedbench{study/table/dataset/setting/method}`` is never stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedbench.errors import visible
from fedbench.report.layout import Entry
from fedbench.results.frame import FINISHED, INCOMPLETE, Compared
from fedbench.results.names import ABSENT, SHIPPED, value_text
from fedbench.results.verdicts import NO_REFERENCE

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
    metrics = len({item.metric for item in items}) > 1
    lines = []
    for entry, item in shown:
        key = "/".join([address, *(value_text(item.at[axis]) for axis in axes), *[item.metric] * metrics])
        for part, number, why in _parts(entry, item):
            name = f"{key}/{part}" if part else key
            lines.append(
                rf"\fedbenchnumber{{{name}}}{{{number}}}" if number else rf"\fedbenchnone{{{name}}}{{{why}}}"
            )
    return "\n".join([f"% {' '.join(visible(comment).split())}", COMMANDS + "\n".join(lines), ""])


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
    yield "", entry.value.rstrip(SHIPPED) if finished else "", why
    yield "std", spread if finished else "", "one seed" if finished else why
    yield "seeds", str(item.n_seeds) if finished else "", why
    yield "scale", item.scale if finished else "", why
    yield "paper", entry.printed.replace(ABSENT, ""), NO_REFERENCE
    yield "difference", entry.delta.replace("−", "-"), item.verdict
    yield "verdict", item.verdict, ""
