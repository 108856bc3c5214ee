"""The words around a table: a caption that says what was run, and notes that state every rule it uses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Paper, Scale, TableSpec
from fedbench.report.numbers import collect, described, rates, rule, stats
from fedbench.report.numbers.compare import Compared, agreement, method_groups
from fedbench.report.numbers.names import ABSENT, AVERAGE, SHIPPED, axis_name, axis_text, phrase
from fedbench.report.numbers.published import PublishedTable

LONGEST_LENGTH = 60
"""Characters that a caption spends on the lengths of trainings; the notes say them all."""
LONG = 420
"""Characters. A longer note goes to the end of the document."""
LONGEST_LIST = 8
"""A list of troubled cells longer than this ends in a count: the CSV has them all."""


def caption(
    spec: TableSpec,
    scale: Scale,
    compared: Sequence[Compared],
    cells: Sequence[Cell],
    given: Mapping[str, Any],
) -> str:
    """Say what the table shows, at which scale, over how many seeds and how long they trained."""
    here = [item for item in compared if item.here and not item.measured.shipped]
    seeds = sorted({item.measured.n_wanted for item in here})
    count = " or ".join(str(n) for n in seeds)
    run = f"{count} seed{'s' * (seeds != [1])}" if seeds else "nothing run"
    long = described.lengths(cells)
    run = "; ".join(filter(None, [run, long if len(long) <= LONGEST_LENGTH else ""]))
    words = [
        phrase(spec.title),
        phrase(spec.caption),
        f"Scale: {scale.name} ({run})",
        described.changed(given),
    ]
    return ". ".join(word for word in words if word) + "."


@dataclass(frozen=True)
class Shown:
    """What a table shows: all that the words around it depend on.

    Attributes:
        paper: whose table it is.
        scale: at which scale.
        spec: the table, as configured.
        cells: whose results it shows.
        compared: its numbers.
        published: the file they are held against, None where that has none of them.
        tolerance: up to which a difference is a match.
        decimals: digits that are compared.
        unknown_names: what the published file names and nothing here is called.
        tasks: which class is positive, its share, dropped samples.
        facts: what was trained on what: lengths, tuned hyper-parameters.
        dashes: whether a place without a number is shown.
        mixed_data: datasets that were prepared in several versions.
        stamp: what ties the numbers to code and configuration.
    """

    paper: Paper
    scale: Scale
    spec: TableSpec
    cells: Sequence[Cell]
    compared: Sequence[Compared]
    published: PublishedTable | None
    tolerance: float
    decimals: int
    unknown_names: Sequence[str]
    tasks: Sequence[str]
    facts: Sequence[str]
    dashes: bool
    mixed_data: Sequence[str]
    stamp: str


def notes(shown: Shown) -> tuple[list[str], list[str]]:
    """Return the notes below a table and those for the end of its document, one paragraph each.

    Below: what the numbers are, the rule, the outcome, which class is positive, what went wrong, doubtful print. At the
    end: how numbers are made, what was trained, what is open, and whatever takes more than ``LONG`` characters.
    """
    paper, scale, compared, table = shown.paper, shown.scale, shown.compared, shown.published
    what = [f"Scale {scale.name}: {scale.description.rstrip('.')}."] if scale.description else []
    prepared = "made from data that were prepared differently, so that these numbers cannot be compared"
    judged = any(item.verdict.difference is not None for item in compared)
    below = [
        [_numbers(paper, shown.spec, compared, table if judged else None), _letters(paper, compared)],
        [_rule(compared, shown.tolerance), _score(compared)] if judged else [],
        [*_additions(paper, compared), *shown.tasks],
        [*_absent(compared, shown.dashes), *_shipped(compared)],
        _trouble(paper, compared),
        _doubts(paper, compared),
        _listed(prepared, shown.mixed_data),
        _listed("published, but nothing here is called so", shown.unknown_names),
    ]
    end = [
        [_bold(compared, shown.decimals), *(_devices(compared) if judged else [])],
        [_combined(paper, shown.spec), _selection(paper, shown.cells)],
        [*what, *shown.facts],
        _origin(compared),
        _open(paper, compared),
        [f"{shown.stamp}."],
    ]
    paragraphs, details = (
        [" ".join(filter(None, lines)) for lines in part if any(lines)] for part in (below, end)
    )
    short = [paragraph for paragraph in paragraphs if len(paragraph) <= LONG]
    return short, [*(paragraph for paragraph in paragraphs if len(paragraph) > LONG), *details]


def _letters(paper: Paper, compared: Sequence[Compared]) -> str:
    """Explain the settings that headings call by a letter."""
    varying = [n for n in paper.settings if len({item.place.get(n) for item in compared}) > 1]
    words = [f"{axis_name(paper, n)}: {paper.settings[n].label}" for n in varying]
    said = [word for word in words if len(word.partition(": ")[0]) == 1 and len(word) > 4]
    return f"{'; '.join(said)}." if said else ""


def _combined(paper: Paper, spec: TableSpec) -> str:
    """Say which numbers are made of several cells."""
    lines = []
    if spec.average is not None:
        what = "datasets" if spec.average == "dataset" else f"values of {paper.settings[spec.average].label}"
        lines.append(f"{AVERAGE}: mean over the {what}, taken seed by seed.")
    if spec.kind == "rates":
        return rates.RULE
    for name in spec.pool:
        values = spec.settings.get(name, [paper.settings[name].default])
        lines.append(f"Repeats: all seeds of each of {len(values)} values of {paper.settings[name].label}.")
    return " ".join(lines)


def _selection(paper: Paper, cells: Sequence[Cell]) -> str:
    """Say by which rule the evaluation that counts was chosen, empty where it is the last one of all runs."""
    rules = {run.train.select for cell in cells for run in cell.runs[:1]}
    chosen = [f"the one with the best {paper.measure(rule).label}" for rule in sorted(filter(None, rules))]
    if not chosen:
        return ""
    last = ["the last one"] if None in rules else []
    return f"The evaluation that counts is {' or, as configured, '.join([*last, *chosen])}."


def _numbers(
    paper: Paper, spec: TableSpec, compared: Sequence[Compared], table: PublishedTable | None
) -> str:
    metrics = [paper.measure(metric).label for metric in spec.metrics]
    what = metrics[0] + "".join(f" ({name})" for name in metrics[1:])
    several = any(item.measured.n_wanted > 1 for item in compared)
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
    judged = [item.verdict for item in compared if item.verdict.difference is not None]
    several = any(verdict.half_width is not None for verdict in judged)
    one = any(verdict.basis == stats.ONE_SEED for verdict in judged)
    two = any(
        i.verdict.half_width is not None and (p := i.published) and p.comparable_std and (p.n_seeds or 0) > 1
        for i in compared
    )
    return rule.sentences(tolerance, several, one, "both sides' seeds" if two else "our seeds alone")


def _open(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    """List the inconclusive numbers with how many seeds would decide, those that need the fewest first."""
    items = [item for item in compared if item.verdict.kind == stats.INCONCLUSIVE]
    items.sort(key=lambda item: item.verdict.seeds or math.inf)
    found = [f"{_where(paper, item, compared)}: {rule.seeds(item.verdict)}" for item in items]
    return _listed("inconclusive, if mean and spread stay what they are", found)


def _score(compared: Sequence[Compared]) -> str:
    held = [item for item in compared if math.isfinite(item.printed)]
    counts = Counter(rule.name(item.verdict) for item in held)
    kinds = (stats.MATCHES, stats.BETTER, stats.WORSE, stats.INCONCLUSIVE)
    first = [f"{kind}{one}" for kind in kinds for one in ("", f" ({stats.ONE_SEED})")]
    last = [collect.NOT_RUN]
    order = [*first, *sorted(set(counts) - {*first, *last}), *last]
    words = [f"{counts[kind]} {kind.replace('matches', 'match')}" for kind in order if counts[kind]]
    return f"Of {len(held)} published values: {', '.join(words)}."


def _bold(compared: Sequence[Compared], decimals: int) -> str:
    if len({item.place["method"] for item in compared}) < 2:
        return ""
    tau = ""
    if any(agreement(group)[0] is not None for group in method_groups(compared)):
        tau = " τ: Kendall's rank agreement of our order of the methods with the paper's"
        part = any(stats.RANKED <= agreement(group)[1] < len(group) for group in method_groups(compared))
        tau += "; (3/5): of 3 in 5 methods." if part else "."
    side = " of each side" if any(item.published for item in compared) else ""
    return f"Bold: the best method{side}; values equal to {decimals} decimals tie.{tau}"


def _additions(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    own = {str(i.place["dataset"]) for i in compared} - {k for k, v in paper.datasets.items() if v.printed}
    if not own:
        return []
    lines = [f"{', '.join(sorted(own))}: our addition, not in the paper, so nothing to compare with."]
    return lines + [f"{note.rstrip('.')}." for name in sorted(own) if (note := paper.datasets[name].note)]


def _devices(compared: Sequence[Compared]) -> list[str]:
    ours = [v for i in compared if math.isfinite(v := i.measured.device_variance)]
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
    troubled = [i for i in compared if i.shown and i.measured.status != collect.FINISHED]
    for status in (collect.DIVERGED, collect.FAILED, collect.UNDEFINED, collect.INCOMPLETE):
        items = [i for i in troubled if i.measured.status == status]
        lines += _listed(status, [f"{_where(paper, i, compared)}: {i.measured.reason}" for i in items])
    stuck = [i for i in compared if i.shown and i.measured.constant]
    named = [f"{_where(paper, i, compared)}: {_seeds(i.measured.constant)}" for i in stuck]
    lines += _listed("constant scores, so an AUC of exactly 0.5: nothing was learned", named)
    still = [i for i in compared if i.shown and i.measured.stuck]
    named = [f"{_where(paper, i, compared)}: {_seeds(i.measured.stuck)}" for i in still]
    what = f"the same to the last digit in the last {collect.STILL} evaluations: training is stuck"
    return lines + _listed(what, named)


def _seeds(seeds: Sequence[int | str]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def _absent(compared: Sequence[Compared], dashes: bool) -> list[str]:
    pending = [i for i in compared if i.here and i.measured.status == collect.NOT_RUN]
    reasons = sorted({i.measured.reason for i in pending if i.measured.reason})
    if reasons:
        return [f"Not run: {'; '.join(reasons)}."]
    return [f"{ABSENT}: not run."] if dashes else []


def _shipped(compared: Sequence[Compared]) -> list[str]:
    shipped = any(item.measured.shipped for item in compared)
    return [f"{SHIPPED}: not trained here; shipped with the repository under reproduced/."] * shipped


def _origin(compared: Sequence[Compared]) -> list[str]:
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


def _doubts(paper: Paper, compared: Sequence[Compared]) -> list[str]:
    items = [
        i for i in compared if i.published and i.published.doubt and i.measured.status != collect.NOT_RUN
    ]
    return _listed("†", [f"{_where(paper, i, compared)}: {i.published.doubt}" for i in items if i.published])


def _listed(head: str, texts: Sequence[str]) -> list[str]:
    texts = list(dict.fromkeys(texts))
    if not texts:
        return []
    more = f" … and {len(texts) - LONGEST_LIST} more, see the CSV" if len(texts) > LONGEST_LIST else ""
    return [
        f"{head[0].upper()}{head[1:]}: {'. '.join(text.rstrip('.') for text in texts[:LONGEST_LIST])}{more}."
    ]


def _where(paper: Paper, item: Compared, compared: Sequence[Compared]) -> str:
    """Name a place by the axes that vary in this table."""
    varying = [axis for axis in item.place if len({other.place[axis] for other in compared}) > 1]
    several = len({other.metric for other in compared}) > 1
    names = [axis_text(paper, axis, item.place[axis]) for axis in varying]
    return ", ".join([*names, *([item.measure.label] if several else [])])
