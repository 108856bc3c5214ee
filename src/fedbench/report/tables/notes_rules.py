"""Notes on how a table's numbers are made and compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedbench.plan.cells import Cell
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers import rates, rule
from fedbench.report.numbers.compare import Compared, agreement, method_groups
from fedbench.report.numbers.names import ABSENT, AGAIN, AVERAGE, SHIPPED, SLOPE, axis_name
from fedbench.results.print_verdicts import ONE_SEED
from fedbench.results.statistics import LEAST


def letters(paper: Paper, compared: Sequence[Compared]) -> str:
    """Explain the settings that headings call by a letter, empty without any."""
    varying = [n for n in paper.settings if len({item.place.get(n) for item in compared}) > 1]
    words = [f"{axis_name(paper, n)}: {paper.settings[n].label}" for n in varying]
    said = [word for word in words if len(word.partition(": ")[0]) == 1 and len(word) > 4]
    return f"{'; '.join(said)}." if said else ""


def combined(paper: Paper, spec: TableSpec) -> str:
    """Say which numbers are made of several cells."""
    lines = []
    if spec.average is not None:
        what = "datasets" if spec.average == "dataset" else f"values of {paper.settings[spec.average].label}"
        lines.append(f"{AVERAGE}: mean over the {what}, taken seed by seed.")
    if spec.slope is not None:
        lines.append(
            f"{SLOPE.capitalize()}: of log number over log {axis_name(paper, spec.slope)}, by least squares, seed by "
            "seed; −1 where the number falls as the setting grows, 0 where it does not depend on it."
        )
    if spec.kind == "rates":
        return rates.rule(spec)
    for name in spec.pool:
        values = paper.values(spec)[name]
        lines.append(f"Repeats: all seeds of each of {len(values)} values of {paper.settings[name].label}.")
    return " ".join(lines)


def selection(paper: Paper, cells: Sequence[Cell]) -> str:
    """Say by which rule the evaluation that counts was chosen, empty where it is the last one of all runs."""
    rules = {run.train.select for cell in cells for run in cell.runs[:1]}
    chosen = [f"the one with the best {paper.measure(rule).label}" for rule in sorted(filter(None, rules))]
    if not chosen:
        return ""
    last = ["the last one"] if None in rules else []
    return f"The evaluation that counts is {' or, as configured, '.join([*last, *chosen])}."


def legend(
    paper: Paper, spec: TableSpec, compared: Sequence[Compared], tolerance: float, dashes: bool
) -> str:
    """Say what a number is, and explain the letters and signs of the table, as far as they occur."""
    kinds = {item.verdict.kind for item in compared if item.verdict.difference is not None}
    bases = {item.verdict.basis for item in compared}
    compares = f"{_signs(kinds)} (tolerance ±{tolerance:g})." if kinds else ""
    shipped = [item.measured for item in compared if item.measured.shipped]
    some = ", or not with all seeds" if any(one.partly for one in shipped) else ""
    marks = {
        "Bold: best": len({item.place["method"] for item in compared if item.measured.n_seeds}) > 1,
        f"{rule.SYMBOLS[ONE_SEED]}: one seed": ONE_SEED in bases,
        f"{SHIPPED}: not trained here{some}": bool(shipped),
        f"{AGAIN}: repeated": any(one.again for one in shipped),
        "†: doubtful": any(item.published and item.published.doubt for item in compared),
        f"{ABSENT}: not run": dashes,
    }
    signs = "; ".join(mark for mark, occurs in marks.items() if occurs)
    parts = [
        _numbers(paper, spec, compared),
        letters(paper, compared),
        compares,
        f"{signs}." if signs else "",
    ]
    return " ".join(filter(None, parts))


def _signs(kinds: set[str]) -> str:
    return ", ".join(
        f"{sign} {kind.removesuffix(' print')}" for kind, sign in rule.SYMBOLS.items() if kind in kinds
    )


def _numbers(paper: Paper, spec: TableSpec, compared: Sequence[Compared]) -> str:
    """Say what a number of ours is."""
    metrics = [paper.measure(metric).label for metric in spec.metrics]
    what = metrics[0] + "".join(f" ({name})" for name in metrics[1:])
    if "metric" in (*spec.rows, *spec.columns):
        what = ", ".join(metrics)
    several = any(item.measured.n_wanted > 1 for item in compared)
    ours = "mean ± standard deviation over seeds" if several else "one seed"
    return f"{what[0].upper()}{what[1:]}: {ours}."


def printed(compared: Sequence[Compared]) -> str:
    """Say what a number of the paper is."""
    spreads = {i.published.spread for i in compared if i.published and i.published.std is not None}
    if spreads == {"std"}:
        counts = sorted({str(i.published.n_seeds) for i in compared if i.published and i.published.n_seeds})
        runs = f"{' or '.join(counts)} runs" if counts else "runs"
        return f"Δ: ours − paper. Paper: mean ± standard deviation over {runs}, as printed."
    if spreads:
        kind = " or ".join(sorted(spreads))
        return (
            f"Δ: ours − paper. Paper: as printed; its ± is a {kind}, not a spread over seeds (see the CSV)."
        )
    return "Δ: ours − paper. Paper: as printed, without a spread."


def verdicts(compared: Sequence[Compared], tolerance: float) -> str:
    """State the rule by which values were compared."""
    found = [item.verdict for item in compared if item.verdict.difference is not None]
    several = any(verdict.half_width is not None for verdict in found)
    one = any(verdict.basis == ONE_SEED for verdict in found)
    prints = [i.published for i in compared if i.published and i.verdict.half_width is not None]
    if any(p.comparable_std is not None for p in prints):
        runs = "its own runs with their spread"
    else:
        counts = {p.n_seeds or 1 for p in prints}
        runs = "one run" if counts <= {1} else f"{' or '.join(map(str, sorted(counts)))} runs"
    return rule.sentences(tolerance, several, one, runs)


def untuned(methods: str) -> list[str]:
    """Say which methods are not tuned for their dataset, of ``methods`` by dataset; nothing where there are none."""
    return [f"Not tuned for this dataset: the order of methods says nothing ({methods})."] if methods else []


def other_data(names: Sequence[str]) -> list[str]:
    """Say which datasets are no longer those that the runs were trained on, and the cure; nothing where all are."""
    cure = "`fedbench forget DATASET`, and the next workflow trains on these"
    return (
        [f"Trained on data other than those prepared here now: {', '.join(names)} ({cure})."] if names else []
    )


def bold(spec: TableSpec, compared: Sequence[Compared], decimals: int) -> str:
    """Say what is set in bold, and what τ means where it is shown."""
    if len({item.place["method"] for item in compared}) < 2:
        return ""
    tau = ""
    if any(agreement(group, decimals)[0] is not None for group in method_groups(compared)):
        tau = " τ: Kendall's rank agreement of our order of the methods with the paper's"
        part = any(LEAST <= agreement(group, decimals)[1] < len(group) for group in method_groups(compared))
        tau += "; (3/5): computed on 3 of 5 methods." if part else "."
    line = "row" if "method" in spec.columns else "column"
    side = " (ours and paper separately)" if any(item.published for item in compared) else ""
    return f"Bold: best method in each {line}{side}; values equal to {decimals} decimals tie.{tau}"


def devices(compared: Sequence[Compared]) -> list[str]:
    """Hold our variance over devices against the printed one."""
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
