"""The words around a table: a caption that says what was run, and notes that state every rule it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.report import described, sentences
from fedbench.report.layout import METRIC
from fedbench.results import compare, degenerate_runs, rates, verdicts
from fedbench.results.frame import DIVERGED, FAILED, INCOMPLETE, NOT_RUN, UNDEFINED
from fedbench.results.names import AVERAGE, SHIPPED, SLOPE, axis_name, axis_text
from fedbench.results.statistics import LEAST
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan, methods_by_dataset
from fedbench.study.schema import Paper, TableSpec

LONGEST_LENGTH = 60
"""Characters that a caption spends on the lengths of trainings; the notes say them all."""


def caption(plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame) -> str:
    """Say what the table shows, at which scale, over how many seeds, how long they trained; the scales of others."""
    ran = frame["of_scale"] & ~frame["shipped"] & (frame["status"] != NOT_RUN)
    seeds = sorted({*frame.loc[ran, "n_wanted"]})
    count = " or ".join(str(n) for n in seeds)
    run = f"{count} seed{'s' * (seeds != [1])}" if seeds else "nothing run here"
    long = described.lengths(cells)
    run = "; ".join([run, *[long] * (0 < len(long) <= LONGEST_LENGTH)])
    others = sorted({*frame.loc[frame["shipped"], "scale"]} - {plan.scale.name})
    return described.caption(plan, name, f" ({run})" + f"; {SHIPPED}: {', '.join(others)}" * bool(others))


def below(
    plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame, made: Mapping[str, Any], dashes: bool
) -> list[str]:
    """Return the notes that may stand below a table, the most important first.

    What the numbers and signs are, data that do not compare, the outcome, which class is positive, what went wrong,
    doubtful print. ``made`` is the provenance of the cells; ``dashes`` tells that a place without a number is shown.
    """
    paper, spec, data = plan.study, plan.table(name), Path(plan.config.data_dir)
    prepared = "made from data that were prepared differently, so that these numbers cannot be compared"
    ran = frame[frame["of_scale"] & (frame["n_seeds"] > 0)]
    measured = {*zip(ran["dataset"], ran["method"], strict=True)}
    not_tuned = [cell for cell in plan.untuned(cells) if (cell.dataset, cell.method) in measured]
    signs = sentences.signs(frame, plan.config.tolerance, dashes)
    outcome = (
        sentences.score(frame, paper.proposes, lambda method: axis_text(paper, "method", method))
        if frame["difference"].notna().any()
        else sentences.bounds(frame)
    )
    notes = [
        " ".join(filter(None, [_numbers(paper, spec, frame), letters(paper, frame), signs])),
        sentences.listed(prepared, [name for name, digests in made["data"].items() if len(digests) > 1]),
        other_data(described.other_data(cells, made["data"], data)),
        sentences.absent(frame),
        sentences.trouble(frame, FAILED),
        untuned(not_tuned),
        outcome,
        *described.weights(cells),
        *described.tasks(cells, data),
        *(described.sites(cells, data) if any("site_" in m or "@" in m for m in spec.metrics) else []),
        *additions(paper, [*frame["dataset"]]),
        *(sentences.trouble(frame, word) for word in (DIVERGED, UNDEFINED, INCOMPLETE)),
        *(sentences.idle_runs(frame, word) for word in degenerate_runs.MEANING),
        sentences.moving(frame),
        sentences.doubts(frame),
        sentences.listed("published, but no name of this study", compare.unknown_names(paper, spec)),
    ]  # fmt: skip
    return [*filter(None, notes)]


def details(plan: Plan, name: str, cells: Sequence[Cell], frame: pd.DataFrame) -> list[str]:
    """Return the notes for the end of a document: the rule in full, how numbers are made, what was trained."""
    paper, spec, tolerance = plan.study, plan.table(name), plan.config.tolerance
    comparable = frame["difference"].notna().any()
    notes = [
        *([sentences.printed(frame), sentences.verdicts(frame, tolerance)] if comparable else []),
        resembling(frame, tolerance),
        bold(spec, frame),
        sentences.devices(frame) if comparable else "",
        combined(paper, spec),
        selection(paper, cells),
        *described.trained(cells),
        *described.chosen(plan, cells),
        sentences.origin(frame),
        sentences.hardware(frame),
        sentences.moved(frame),
    ]
    return [*filter(None, notes)]


def _numbers(paper: Paper, spec: TableSpec, frame: pd.DataFrame) -> str:
    """Say what a number of ours is; those of single sites are named by their columns or rows alone."""
    by_site = {metric.partition("@")[0] for metric in spec.metrics if "@" in metric}
    metrics = [
        paper.measure(metric).label + " (of each site too)" * (metric in by_site)
        for metric in dict.fromkeys(metric.partition("@")[0] for metric in spec.metrics)
    ]
    what = metrics[0] + "".join(f" ({name})" for name in metrics[1:])
    if METRIC in (*spec.rows, *spec.columns):
        what = ", ".join(metrics)
    several = (frame["n_wanted"] > 1).any()
    ours = "mean ± standard deviation over seeds" if several else "one seed"
    return f"{what[0].upper()}{what[1:]}: {ours}."


def letters(paper: Paper, frame: pd.DataFrame) -> str:
    """Explain the settings that headings call by a letter, empty without any."""
    varying = [n for n in paper.settings if len({at.get(n) for at in frame["at"]}) > 1]
    words = [f"{axis_name(paper, n)}: {paper.settings[n].label}" for n in varying]
    said = [word for word in words if len(word.partition(": ")[0]) == 1 and len(word) > 4]
    return f"{'; '.join(said)}." if said else ""


def other_data(names: Sequence[str]) -> str:
    """Say which datasets are no longer those that the runs were trained on, and the cure; nothing where all are."""
    cure = "`fedbench forget DATASET`, and the next workflow trains on these"
    said = f"Trained on data other than those prepared here now: {', '.join(names)} ({cure})."
    return said if names else ""


def untuned(cells: Sequence[Cell]) -> str:
    """Say which methods are not tuned for their dataset, nothing where there are none."""
    said = "Not tuned for this dataset: the order of methods says nothing"
    return f"{said} ({methods_by_dataset(cells)})." if cells else ""


def additions(paper: Paper, datasets: Sequence[str]) -> list[str]:
    """Name the datasets that are ours, with what is said of each."""
    ours = sorted(name for name, entry in paper.datasets.items() if name in datasets and not entry.printed)
    first = f"{', '.join(ours)}: not in the paper; there is no published value."
    return [first] * bool(ours) + [
        f"{note.rstrip('.')}." for name in ours if (note := paper.datasets[name].note)
    ]


def resembling(frame: pd.DataFrame, tolerance: float) -> str:
    """Say how many matching numbers would match the published value of another method too; empty where none does."""
    same, total = verdicts.resemblance(frame, tolerance)
    said = (
        f"{same} of the {total} comparisons of a match with another method's published value would match too"
    )
    return f"{said}: matches say little about the order." if same else ""


def bold(spec: TableSpec, frame: pd.DataFrame) -> str:
    """Say what is set in bold, and what τ means where it is shown."""
    if frame["method"].nunique() < 2:
        return ""
    tau = ""
    if frame["tau"].notna().any():
        part = ((frame["ordered"] >= LEAST) & (frame["ordered"] < frame["methods"])).any()
        tau = " τ: Kendall correlation of our ranking of the methods with the published one"
        tau += "; (3/5): computed on 3 of 5 methods." if part else "."
    line = "row" if "method" in spec.columns else "column"
    side = " (ours and paper separately)" if frame["has_print"].any() else ""
    decimals = frame["digits"].max()
    return f"Bold: best method in each {line}{side}; values equal to {decimals} decimals tie.{tau}"


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
    rules = {run.train.select for cell in cells for run in cell.runs[:1]}
    chosen = [f"the one with the best {paper.measure(rule).label}" for rule in sorted(filter(None, rules))]
    last = ["the last one"] if None in rules else []
    return f"The evaluation that counts is {' or, as configured, '.join([*last, *chosen])}." if chosen else ""
