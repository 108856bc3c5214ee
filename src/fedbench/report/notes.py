"""The words around a table: a caption that says what was run, and notes that change how its numbers are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.report import described, verdict_words
from fedbench.report.layout import METRIC
from fedbench.results import compare, rates, run_facts, verdicts
from fedbench.results.frame import DIVERGED, FAILED, INCOMPLETE, NOT_RUN, UNDEFINED
from fedbench.results.names import AVERAGE, SHIPPED, SLOPE, axis_name, axis_text
from fedbench.results.statistics import COVERAGE, runs_of_print
from fedbench.results.verdicts import BOUND, MATCHES, ONE_SEED
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan, methods_by_dataset
from fedbench.study.schema import Paper, TableSpec

LONGEST_LIST = 8
"""A list of troubled cells longer than this ends in a count: the CSV has them all."""
LONGEST_LENGTH = 60
"""Characters that a caption spends on the lengths of trainings; the notes say them all."""


def caption(plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame) -> str:
    """Say what the table shows, at which scale, over how many seeds, how long they trained; the scales of others."""
    ran = frame["of_scale"] & (frame["trained"] | ~frame["shipped"]) & (frame["status"] != NOT_RUN)
    seeds = sorted({*frame.loc[ran, "n_wanted"]})
    run = described.counted(" or ".join(map(str, seeds)), "seed") if seeds else "nothing trained here"
    trained = {*frame.loc[ran, "dataset"]}
    shown = [cell for cell in cells if cell.dataset in trained] or cells
    lengths = described.lengths(cell.runs[0] for cell in shown)
    if lengths and len(lengths) <= LONGEST_LENGTH:
        run += f", {lengths}"
    if others := sorted({*frame.loc[frame["shipped"], "scale"]} - {plan.scale.name}):
        run += f". {SHIPPED}: trained elsewhere, at scale {', '.join(others)}"
    return described.caption(plan, name, f": {run}")


def below(
    plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame, made: Mapping[str, Any]
) -> list[str]:
    """Return the notes that may stand below a table, the most important first.

    ``made`` is what :func:`fedbench.results.collect.provenance` says of the cells.
    """
    paper, spec, folder = plan.study, plan.table(name), Path(plan.config.data_dir)
    ran = frame[frame["of_scale"] & (frame["n_seeds"] > 0)]
    measured = {*zip(ran["dataset"], ran["method"], strict=True)}
    not_tuned = [cell for cell in plan.untuned(cells) if (cell.dataset, cell.method) in measured]
    first = [_numbers(paper, spec, frame), letters(paper, frame), signs(spec, frame, plan.config.tolerance)]
    shown = {*_visible(frame)["dataset"]}
    ours = {name: of.note for name, of in paper.datasets.items() if name in shown and not of.printed}
    doubts = _visible(frame).query("doubt != ''")
    notes = [
        " ".join(filter(None, first)),
        f"{', '.join(ours)}: not in the paper; there is no published value." if ours and spec.published else "",
        described.other_data(cells, made["data"], folder),
        other_code(cells, made["other_code"]),
        *(trouble(frame, status) for status in (NOT_RUN, FAILED)),
        untuned(plan.named_untuned(not_tuned)),
        outcome(paper, frame),
        order(frame),
        references(spec, frame),
        gains(paper, frame),
        described.repeated(cells, folder) if frame["low"].notna().any() else "",
        *described.weights(cells),
        *described.tasks(cells, folder),
        *(described.sites(cells, folder) if any("site_" in m or "@" in m for m in spec.metrics) else []),
        *(f"{note.rstrip('.')}." for note in ours.values() if note),
        *(trouble(frame, status) for status in (DIVERGED, UNDEFINED, INCOMPLETE)),
        *(idle_runs(frame, word) for word in run_facts.MEANING),
        moving(frame, any(run.train.decay_at for cell in cells for run in cell.runs)),
        listed("†", _at(doubts, doubts["doubt"])),
        listed("published, but in no table of this study", compare.unknown_names(paper, spec)),
    ]  # fmt: skip
    return [note for note in notes if note]


def details(plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame) -> list[str]:
    """Return the notes for the end of a document: how print counts, how numbers are made, what was trained."""
    notes = [published(frame), combined(plan.study, plan.table(name)), selection(plan.study, cells)]
    return [*filter(None, notes), *described.trained(cells), *described.chosen(plan, cells)]


def _numbers(paper: Paper, spec: TableSpec, frame: pd.DataFrame) -> str:
    """Say what a number of ours is; those of single sites are named by their columns or rows."""
    of_all = dict.fromkeys(metric.partition("@")[0] for metric in spec.metrics)
    first, *others = [paper.measure(metric).label for metric in of_all]
    apart = METRIC in (*spec.rows, *spec.columns)
    what = _capital(first) + "".join(f", {name}" if apart else f" ({name})" for name in others)
    if not (frame["n_seeds"] > 0).any():
        return f"{what}."
    several = (frame["n_wanted"] > 1).any()
    return f"{what}: {'mean ± standard deviation over seeds' if several else 'one seed'}."


def letters(paper: Paper, frame: pd.DataFrame) -> str:
    """Explain the settings that headings call by a letter, empty without any."""
    varying = [n for n in paper.settings if len({at.get(n) for at in frame["at"]}) > 1]
    names = {axis_name(paper, name): paper.settings[name].label for name in varying}
    said = [f"{name}: {label}" for name, label in names.items() if len(name) == 1 and len(label) > 1]
    return f"{'; '.join(said)}." if said else ""


def references(spec: TableSpec, frame: pd.DataFrame) -> str:
    """Say what references are, and what a gain over one is; empty without any."""
    if not spec.references:
        return ""
    what = {
        "local": "local: each client trains alone, and a site's number is its own model's; that of all test samples "
        "is the mean over these models",
        "pooled": "pooled: one model of all data in one place, in batches as large as those of all clients",
    }
    said = "; ".join(what[name] for name in spec.references)
    return (
        f"{_capital(said)}; with the hyper-parameters and as many steps as federated. The gain is federated "
        f"minus {spec.references[0]}, seed by seed; in brackets its {COVERAGE:.0%} interval over seeds and, of an AUC, "
        f"over the draw of test samples, {shared_samples(frame[frame['gain'] & frame['low'].notna()])}."
    )


def shared_samples(gains: pd.DataFrame) -> str:
    """Say how the intervals of gains, with columns ``label`` and ``paired``, take it that both models share samples."""
    apart = "as if the models had not shared these, which is wide"
    if not gains["paired"].any():
        return apart
    paired = "paired over these (DeLong et al. 1988)"
    rest = ", ".join(gains.loc[~gains["paired"], "label"].unique())
    return f"{paired}; that of {rest} {apart}" if rest else paired


def untuned(named: str) -> str:
    """Say which methods, as :meth:`Plan.named_untuned` has them, are not tuned for their dataset; empty without any."""
    return f"Not tuned for this dataset: the order of methods says nothing ({named})." if named else ""


def other_code(cells: Sequence[Cell], made: Mapping[str, int]) -> str:
    """Say how many runs of which methods other code made than today's, by the names of cells; else nothing."""
    theirs = [cell for cell in cells if cell.name in made]
    if not theirs:
        return ""
    count = f"{sum(made.values())} of {sum(len(cell.runs) for cell in theirs)} runs"
    return f"Other code than today's made {count} ({methods_by_dataset(theirs)})."


def combined(paper: Paper, spec: TableSpec) -> str:
    """Say which numbers are made of several cells."""
    if spec.kind == "rates":
        return rates.rule(spec)
    lines = []
    if spec.average is not None:
        what = "datasets" if spec.average == "dataset" else f"values of {paper.settings[spec.average].label}"
        lines.append(f"{AVERAGE}: mean over the {what}, taken seed by seed.")
    if spec.slope is not None:
        lines.append(
            f"{SLOPE.capitalize()}: of log number over log {axis_name(paper, spec.slope)}, by least squares, seed by "
            "seed; −1 where the number falls as the setting grows, 0 where it does not depend on it."
        )
    for name in spec.pool:
        values = paper.values(spec)[name]
        lines.append(f"Mean over {len(values)} values of {paper.settings[name].label}, taken seed by seed.")
    return " ".join(lines)


def selection(paper: Paper, cells: Sequence[Cell]) -> str:
    """Say by which rule the evaluation that counts was chosen, empty where it is the last one of all runs."""
    rules = {cell.runs[0].train.select for cell in cells}
    chosen = [f"the one with the best {paper.measure(rule).label}" for rule in sorted(filter(None, rules))]
    if not chosen:
        return ""
    if None in rules:
        chosen.insert(0, "the last one")
    return f"The evaluation that counts is {' or, as configured, '.join(chosen)}."


def signs(spec: TableSpec, frame: pd.DataFrame, tolerance: float) -> str:
    """Explain the signs of a table, as far as they occur."""
    several = frame.loc[frame["n_seeds"] > 0, "method"].nunique() > 1
    line = "row" if "method" in spec.columns else "column"
    if line == "column" and METRIC in spec.rows:
        line += ", metric by metric"
    if (frame["shown"] & frame["printed"].notna()).any():
        line += ", ours and published separately"
    shipped = frame[frame["shipped"]]
    seeds = described.span(shipped["n_wanted"].where(shipped["status"] != INCOMPLETE, shipped["n_seeds"]))
    marks = {
        f"Bold: best in {line}": several,
        f"{verdict_words.SYMBOLS[ONE_SEED]}: one seed": (frame["basis"] == ONE_SEED).any(),
        f"{verdict_words.EDGE}: a tuned value lies on the edge of its grid": frame["on_edge"].any(),
        f"{SHIPPED}: (partly) trained elsewhere, {described.counted(seeds, 'seed')}": len(shipped),
        f"in brackets: {COVERAGE:.0%} interval of a gain": frame["low"].notna().any(),
        "†: doubtful in print": _visible(frame)["doubt"].any(),
    }
    said = "; ".join(mark for mark, occurs in marks.items() if occurs)
    compares, interval = frame["difference"].notna().any(), frame["half_width"].notna().any()
    legend = verdict_words.legend(tolerance, bool(interval)) if compares else ""
    return " ".join(filter(None, [legend, f"{_capital(said)}." if said else ""]))


def _visible(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers that a table does not leave out: those that ran, or all where none did."""
    ran = frame["status"] != NOT_RUN
    return frame[ran] if ran.any() else frame


def published(frame: pd.DataFrame) -> str:
    """Say what the ± of print is, and as how many runs print counts in intervals."""
    frame = frame[frame["difference"].notna()]
    if frame.empty:
        return ""
    spreads = sorted({*frame.loc[frame["printed_std"].notna(), "spread"]}) or ["no spread"]
    counts = sorted({*runs_of_print(frame["comparable_std"], frame["print_seeds"])})
    runs = " or ".join(described.counted(n, "run") for n in counts)
    known = "with this spread" if frame["comparable_std"].notna().any() else "without a spread"
    said = " or ".join(spreads).replace("std", "standard deviation over runs")
    return f"Published with {said}; in intervals a published number counts as {runs} {known}."


def listed(head: str, texts: Iterable[str]) -> str:
    """Join a heading and texts into one sentence; repeated ones count once. Empty without any."""
    unique = list(dict.fromkeys(texts))
    if not unique:
        return ""
    more = f" … and {len(unique) - LONGEST_LIST} more, see the CSV" if len(unique) > LONGEST_LIST else ""
    shown = ". ".join(text.rstrip(".") for text in unique[:LONGEST_LIST])
    return f"{_capital(head)}: {shown}{more}."


def _capital(text: str) -> str:
    """Begin a sentence with a capital letter."""
    return text[0].upper() + text[1:]


def _at(rows: pd.DataFrame, texts: Iterable[str]) -> list[str]:
    """Say something of places; a table of one place has no name for it."""
    return [": ".join(filter(None, pair)) for pair in zip(rows["where"], texts, strict=True)]


def outcome(paper: Paper, frame: pd.DataFrame) -> str:
    """Count the verdicts on what has run, those of the proposed methods apart; of bounds, how numbers lie to them."""
    bounded = frame[frame["verdict"] == BOUND]
    if len(bounded):
        within = (bounded["mean"] <= bounded["printed"]).sum()
        return f"The paper gives bounds: {within} of {len(bounded)} means lie within theirs."
    ran = frame[frame["printed"].notna() & (frame["verdict"] != NOT_RUN)]
    proposed = ran["method"].isin(paper.proposes)
    if ran["difference"].isna().all():
        return ""
    if not proposed.any() or proposed.all():
        return f"Verdicts: {_counts(ran)}."
    names = ", ".join(axis_text(paper, "method", name) for name in ran.loc[proposed, "method"].unique())
    return f"Verdicts: {names} {_counts(ran[proposed])}; rivals {_counts(ran[~proposed])}."


def _counts(frame: pd.DataFrame) -> str:
    """Count verdicts, the most frequent first."""
    counts = Counter(map(verdict_words.name, frame["verdict"], frame["basis"])).most_common()
    return ", ".join(f"{n} {kind}" for kind, n in counts).replace(MATCHES, "match").replace(" published", "")


def order(frame: pd.DataFrame) -> str:
    """Say how far our order of methods is the published one, over all places and metrics; empty without an order."""
    taus = verdicts.orders(frame)
    if not taus:
        return ""
    mean, *ends = (f"{tau:.2f}".replace("-", "−") for tau in (sum(taus) / len(taus), min(taus), max(taus)))
    said = f"Kendall's τ of the order of methods with the published one: {mean}"
    if len(taus) == 1:
        return f"{said}."
    return f"{said} on average over {len(taus)} comparisons ({' to '.join(ends)})."


def gains(paper: Paper, frame: pd.DataFrame) -> str:
    """Say where federated training gains or loses by more than chance, at single sites if there are any."""
    known = frame[frame["gain"] & frame["shown"] & frame["low"].notna()]
    sites = known["metric"].str.contains("@")
    known = known[sites] if sites.any() else known
    if known.empty:
        return ""
    names = known["label"]
    if known["method"].nunique() > 1:
        names = names + known["method"].map(lambda method: f" ({axis_text(paper, 'method', method)})")
    ends = known[["low", "high"]].mul(known["sign"], axis=0)
    places = {"gains": ends.min(axis=1) > 0, "loses": ends.max(axis=1) < 0}
    words = [f"{word} in {', '.join(names[at])}" for word, at in places.items() if at.any()]
    said = f"Federated training {' and '.join(words)}; " if words else ""
    rest = len(known) - sum(at.sum() for at in places.values())
    what = "sites’ gains" if sites.any() else "gains"
    return f"{said}{rest} of {len(known)} intervals of {what} hold 0."


def trouble(frame: pd.DataFrame, status: str) -> str:
    """List the numbers of a status with the reason of each."""
    rows = frame[frame["shown"] & (frame["status"] == status) & (frame["reason"] != "")]
    return listed(status, _at(rows, rows["reason"]))


def idle_runs(frame: pd.DataFrame, word: str) -> str:
    """List the runs that learned nothing, as ``word`` says."""
    rows = frame[frame["shown"] & frame["idle"].map(lambda words: word in words)]
    seeds = (f"seed {', '.join(map(str, words[word]))}" for words in rows["idle"])
    return listed(run_facts.MEANING[word], _at(rows, seeds))


def moving(frame: pd.DataFrame, decays: bool = False) -> str:
    """Count the results that still changed by more than what matters in the last fifth of training.

    Where step sizes fall (``decays``), that ends when they first do.
    """
    known = frame[frame["shown"] & (frame["mean"] + frame["pace"]).notna() & (frame["matters"] > 0)]
    late = known[known["moving"] != ""]
    if late.empty:
        return ""
    limits = " or ".join(sorted({f"{limit:g}" for limit in late["matters"]}))
    end = "before the step size was reduced" if decays else "of training"
    return (
        f"{len(late)} of {len(known)} curves had not levelled off (more than {limits} in the last fifth {end}); "
        "longer training may change these results."
    )
