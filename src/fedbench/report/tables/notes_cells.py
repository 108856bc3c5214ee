"""Notes on single numbers of a table: the outcome, where they come from, what went wrong, what is doubtful."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from fedbench.plan.schema import Paper
from fedbench.report.numbers import rule
from fedbench.report.numbers.compare import BOUND, Compared, resemblance
from fedbench.report.numbers.names import SHIPPED, axis_text
from fedbench.report.numbers.rows import NOT_RUN
from fedbench.results import idle
from fedbench.results.print_verdicts import MATCHES, ONE_SEED

LONGEST_LIST = 8
"""A list of troubled cells longer than this ends in a count: the CSV has them all."""


def score(paper: Paper, compared: Sequence[Compared]) -> str:
    """Count the verdicts on what has run, those of the paper's own methods apart from their rivals'."""
    ran = [i for i in compared if math.isfinite(i.printed) and i.verdict.kind != NOT_RUN]
    own = [item for item in ran if item.place["method"] in paper.proposes]
    rivals = [item for item in ran if item.place["method"] not in paper.proposes]
    names = ", ".join(dict.fromkeys(str(item.place["method"]) for item in own))
    parts = [(f"{names} ", own), ("rivals ", rivals)] if own and rivals else [("", ran)]
    return f"Verdicts: {'; '.join(whose + _counts(items) for whose, items in parts)}."


def resembling(compared: Sequence[Compared], tolerance: float) -> str:
    """Say how many matching numbers would match the published value of another method too; empty where none does."""
    same, total = resemblance(compared, tolerance)
    return (
        f"Matching numbers would also match another method's published value in {same} of {total} cases."
        if same
        else ""
    )


def _counts(items: Sequence[Compared]) -> str:
    counts = Counter(rule.name(item.verdict) for item in items)
    first = [f"{kind}{one}" for kind in rule.SYMBOLS for one in ("", f" ({ONE_SEED})")]
    order = [*first, *sorted(set(counts) - {*first})]
    return ", ".join(
        f"{counts[kind]} {kind.replace(MATCHES, 'match').replace(' print', '')}"
        for kind in order
        if counts[kind]
    )


def bounds(compared: Sequence[Compared]) -> str:
    """Say how measured numbers lie to printed bounds, which give no verdict; empty where there are none."""
    pairs = [(i.mean, i.printed) for i in compared if i.verdict.kind == BOUND]
    within = sum(ours <= printed for ours, printed in pairs)
    return f"The paper prints bounds: {within} of {len(pairs)} means lie within theirs." if pairs else ""


def additions(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    """Name the datasets that are ours, with what is said of each."""
    own = {str(i.place["dataset"]) for i in compared} - {k for k, v in paper.datasets.items() if v.printed}
    if not own:
        return []
    lines = [f"{', '.join(sorted(own))}: our addition, not in the paper, so nothing to compare with."]
    return lines + [f"{note.rstrip('.')}." for name in sorted(own) if (note := paper.datasets[name].note)]


def absent(compared: Sequence[Compared]) -> list[str]:
    """Say why numbers are missing, where that is known."""
    pending = [i for i in compared if i.here and i.measured.status == NOT_RUN]
    reasons = sorted({i.measured.reason for i in pending if i.measured.reason})
    return [f"Not run: {'; '.join(reasons)}."] if reasons else []


def origin(compared: Sequence[Compared]) -> list[str]:
    """Say where shipped numbers come from: scale, seeds, code and hardware."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for item in compared:
        one = item.measured
        if one.shipped:
            seeds = "one seed" if one.n_seeds == 1 else f"{one.n_seeds} seeds"
            where = f"{item.place['dataset']} at scale {one.scale}, {seeds}"
            commits, hardware = found.setdefault(where, (set(), set()))
            commits.update(one.commit.split())
            hardware.update({one.cost.hardware} - {""})
    lines = [
        f"{where} (code {', '.join(sorted(commits))}{''.join(f', {name}' for name in sorted(hardware))})"
        for where, (commits, hardware) in found.items()
    ]
    return [f"{SHIPPED}: {'; '.join(lines)}."] if lines else []


def trouble(paper: Paper, compared: Sequence[Compared], *statuses: str) -> list[str]:
    """List the cells of some statuses with the reason of each."""
    lines: list[str] = []
    for status in statuses:
        items = [i for i in compared if i.shown and i.measured.status == status]
        lines += listed(status, [_at(_where(paper, i, compared), i.measured.reason) for i in items])
    return lines


def idle_runs(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    """List the runs that learned nothing or are stuck."""
    lines: list[str] = []
    for word, meaning in idle.MEANING.items():
        found = [(i, runs) for i in compared if i.shown and (runs := i.measured.idle.get(word))]
        lines += listed(meaning, [_at(_where(paper, i, compared), _seeds(runs)) for i, runs in found])
    return lines


def moving(compared: Sequence[Compared]) -> list[str]:
    """Count the results that were still changing at the end of training, by more than what matters in a fifth of it."""
    known = [i for i in compared if i.shown and math.isfinite(i.measured.mean + i.measured.pace)]
    known = [i for i in known if i.measure.matters]
    late = [i for i in known if i.moving]
    if not late:
        return []
    limits = " or ".join(sorted({f"{i.measure.matters:g}" for i in late}))
    return [
        f"{len(late)} of {len(known)} results were still changing at the end of training (by more than {limits} in a "
        "fifth of it, before step sizes fell); longer training may change them."
    ]


def moved(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    """List by how much numbers still changed in the last fifth of training, those that did most first."""
    items = [item for item in compared if item.shown and item.moving]
    items.sort(key=lambda item: -abs(item.measured.pace) / item.measure.matters)
    return listed("still changing", [_at(_where(paper, item, compared), item.moving) for item in items])


def _seeds(seeds: Sequence[int | str]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def doubts(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    """List where the print is in doubt."""
    items = [i for i in compared if i.published and i.published.doubt and i.measured.status != NOT_RUN]
    return listed("†", [_at(_where(paper, i, compared), i.published.doubt) for i in items if i.published])


def listed(head: str, texts: Sequence[str]) -> list[str]:
    """Join a heading and texts into one sentence; repeated ones count once. Empty without any."""
    texts = list(dict.fromkeys(texts))
    if not texts:
        return []
    more = f" … and {len(texts) - LONGEST_LIST} more, see the CSV" if len(texts) > LONGEST_LIST else ""
    return [
        f"{head[0].upper()}{head[1:]}: {'. '.join(text.rstrip('.') for text in texts[:LONGEST_LIST])}{more}."
    ]


def _at(where: str, what: str) -> str:
    """Join a place and what is said of it; a table of one place has no name for it."""
    return f"{where}: {what}" if where else what


def _where(paper: Paper, item: Compared, compared: Sequence[Compared]) -> str:
    """Name a place by the axes that vary in this table."""
    varying = [axis for axis in item.place if len({other.place[axis] for other in compared}) > 1]
    several = len({other.metric for other in compared}) > 1
    names = [axis_text(paper, axis, item.place[axis]) for axis in varying]
    return ", ".join([*names, *([item.measure.label] if several else [])])
