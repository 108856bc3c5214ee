"""The words around a table: a caption that says what was run, and notes that state every rule it uses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from fedbench.report import claims, collect
from fedbench.report.compare import Compared, agreement, rivals
from fedbench.report.names import ABSENT, axis_name, axis_text, metric_label, phrase
from fedbench.report.published import PublishedTable
from fedbench.schema import Paper, Scale, TableSpec

LONGEST_LIST = 8
"""A list of troubled cells longer than this ends in a count: the CSV has them all."""


def caption(spec: TableSpec, scale: Scale, compared: Sequence[Compared]) -> str:
    """Say what the table shows, at which scale and over how many seeds."""
    seeds = sorted({item.measured["n_wanted"] for item in compared if item.here})
    count = " or ".join(str(n) for n in seeds)
    run = f"{count} seed{'s' * (seeds != [1])}" if seeds else "nothing run"
    words = [phrase(spec.title), phrase(spec.caption), f"Scale: {scale.name} ({run})"]
    return ". ".join(word for word in words if word) + "."


def notes(
    paper: Paper, scale: Scale, spec: TableSpec, compared: Sequence[Compared], table: PublishedTable | None,
    tolerance: float, findings: Sequence[claims.Finding], stamp: str, decimals: int, strangers: Sequence[str] = (),
    mixed: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """Return the notes below a table, one paragraph each, only those its entries need.

    In order: what the numbers are and the rules, the outcome, the scale, what went wrong, doubtful print, datasets
    of which there are several versions, names in the published file that fit nothing, the stamp.
    """
    rule = [_rule(compared, tolerance)] if table is not None else []
    score = [_score(compared), *_devices(compared)] if table is not None else []
    named = scale.description and {paper.key, paper.extends} & scale.papers.keys()
    what = [f"Scale {scale.name}: {scale.description.rstrip('.')}."] if named else []
    paragraphs = [
        [_numbers(spec, compared, table), *rule, _bold(compared, decimals), _letters(paper, compared)],
        [*score, *map(str, findings)],
        [*what, *_strangers(paper, compared), *_absent(compared)],
        _trouble(paper, compared),
        _doubts(paper, compared),
        _listed(
            "made from data that were prepared differently, so that these numbers cannot be compared", mixed
        ),
        _listed("published, but nothing here is called so", strangers),
        [stamp],
    ]
    return [" ".join(filter(None, lines)) for lines in paragraphs if any(lines)]


def _letters(paper: Paper, compared: Sequence[Compared]) -> str:
    """Explain the settings that headings call by a letter."""
    varying = [n for n in paper.settings if len({item.place[n] for item in compared}) > 1]
    words = [f"{axis_name(paper, n)}: {paper.settings[n].label}" for n in varying]
    said = [word for word in words if len(word.partition(": ")[0]) == 1 and len(word) > 4]
    return f"{'; '.join(said)}." if said else ""


def _numbers(spec: TableSpec, compared: Sequence[Compared], table: PublishedTable | None) -> str:
    metrics = [metric_label(metric) for metric in spec.metrics]
    what = metrics[0] + "".join(f" ({name})" for name in metrics[1:])
    several = any(item.measured["n_wanted"] > 1 for item in compared)
    ours = "mean ± standard deviation over seeds (ddof 1)" if several else "one seed, so no spread"
    line = f"{what[0].upper()}{what[1:]}. Ours: {ours}."
    if table is None:
        return line
    spreads = {i.published.spread for i in compared if i.published and i.published.std is not None}
    if spreads == {"std"}:
        counts = sorted({str(i.published.n_seeds) for i in compared if i.published and i.published.n_seeds})
        runs = f"{' or '.join(counts)} runs" if counts else "runs"
        line += f" Paper: as printed, mean ± standard deviation over {runs}."
        return f"{line} Δ: ours − paper."
    if spreads:
        kind = " or ".join(sorted(spreads))
        line += f" Paper: as printed; its ± is a {kind}, not a spread over seeds, and stands in the CSV."
        return f"{line} Δ: ours − paper."
    return f"{line} Paper: as printed, without a spread. Δ: ours − paper."


def _rule(compared: Sequence[Compared], tolerance: float) -> str:
    intervals = any(item.verdict.half_width is not None for item in compared)
    two = any(
        i.verdict.half_width is not None and (p := i.published) and p.comparable_std and (p.n_seeds or 0) > 1
        for i in compared
    )
    side = "both sides' seeds" if two else "our seeds alone"
    if not intervals:
        return f"≈ matches: |Δ| ≤ {tolerance:g}. ↑ better, ↓ worse."
    return (
        f"≈ matches: |Δ| ≤ {tolerance:g}. ∼ matches within noise: |Δ| is larger, but inside the "
        f"half-width of the 95% t-interval of the difference ({side}). ↑ better, ↓ worse."
    )


def _score(compared: Sequence[Compared]) -> str:
    held = [item for item in compared if math.isfinite(item.printed)]
    counts = Counter(item.verdict.kind if item.here else "not part of this scale" for item in held)
    ends = ["matches", "better", "worse"], ["not run", "not part of this scale"]
    order = [*ends[0], *sorted(set(counts) - {*ends[0], *ends[1]}), *ends[1]]
    words = [f"{counts[kind]} {'match' if kind == 'matches' else kind}" for kind in order if counts[kind]]
    return f"Of {len(held)} published values: {', '.join(words)}."


def _bold(compared: Sequence[Compared], decimals: int) -> str:
    if len({item.place["method"] for item in compared}) < 2:
        return ""
    tau = ""
    if any(math.isfinite(item.mean) and math.isfinite(item.printed) for item in compared):
        tau = " τ: Kendall's rank agreement of our order of the methods with the paper's"
        part = any(1 < agreement(group)[1] < len(group) for group in rivals(compared))
        tau += "; (2/5): of 2 in 5 methods." if part else "."
    side = " of each side" if any(item.published for item in compared) else ""
    return f"Bold: the best method{side}; values equal to {decimals} decimals tie.{tau}"


def _strangers(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    own = {str(i.place["dataset"]) for i in compared} - {k for k, v in paper.datasets.items() if v.printed}
    if not own:
        return []
    lines = [f"{', '.join(sorted(own))}: our addition, not in the paper, so nothing to compare with."]
    return lines + [f"{note.rstrip('.')}." for name in sorted(own) if (note := paper.datasets[name].note)]


def _devices(compared: Sequence[Compared]) -> list[str]:
    ours = [v for i in compared if math.isfinite(v := i.measured["device_variance"])]
    printed = [
        i.published.std
        for i in compared
        if i.published and i.published.std is not None and i.published.spread == "device variance"
    ]
    if not ours or not printed:
        return []
    return [
        f"Variance over devices, which is what the paper's ± is: at most {max(ours):.2g} in ours, "
        f"at most {max(printed):g} in print (each value is in the CSV)."
    ]


def _trouble(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    lines: list[str] = []
    troubled = [i for i in compared if i.here and i.measured["status"] != collect.FINISHED]
    for status in (collect.DIVERGED, collect.FAILED, collect.UNDEFINED, collect.INCOMPLETE):
        items = [i for i in troubled if i.measured["status"] == status]
        lines += _listed(status, [f"{_where(paper, i, compared)}: {i.measured['reason']}" for i in items])
    return lines


def _absent(compared: Sequence[Compared]) -> list[str]:
    pending = [i for i in compared if i.here and i.measured["status"] == collect.NOT_RUN]
    reasons = sorted({i.measured["reason"] for i in pending if i.measured["reason"]})
    outside = any(not item.here for item in compared)
    if not pending:
        return [f"{ABSENT}: not part of this scale."] if outside else []
    count = f"{len(pending)} of this scale's numbers {'is' if len(pending) == 1 else 'are'} still to run"
    rest = "; the others are not part of this scale" if outside else ""
    return [f"{ABSENT}: {count}{''.join(f' ({reason})' for reason in reasons)}{rest}."]


def _doubts(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    items = [i for i in compared if i.published and i.published.doubt]
    return _listed("†", [f"{_where(paper, i, compared)}: {i.published.doubt}" for i in items if i.published])


def _listed(head: str, texts: Sequence[str]) -> list[str]:
    texts = list(dict.fromkeys(texts))
    if not texts:
        return []
    more = f" … and {len(texts) - LONGEST_LIST} more, see the CSV" if len(texts) > LONGEST_LIST else ""
    return [f"{head.capitalize()}: {'. '.join(text.rstrip('.') for text in texts[:LONGEST_LIST])}{more}."]


def _where(paper: Paper, item: Compared, compared: Sequence[Compared]) -> str:
    """Name a place by the axes that vary in this table."""
    varying = [axis for axis in item.place if len({other.place[axis] for other in compared}) > 1]
    several = len({other.metric for other in compared}) > 1
    names = [axis_text(paper, axis, item.place[axis]) for axis in varying]
    return ", ".join([*names, *([metric_label(item.metric)] if several else [])])
