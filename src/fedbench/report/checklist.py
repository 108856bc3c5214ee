"""What conferences ask in checklists about experiments, from the facts of runs; what nothing says is "not known".

The numbers of questions are those of the NeurIPS paper checklist (2025); parts of the machine learning reproducibility
checklist (Pineau et al., version 2.0) are named by their headings: datasets, code, results.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedbench.data.summary import data_rows
from fedbench.jobs.progress import duration
from fedbench.plan.configuration import CONFIG_DIR, read_tuned_file
from fedbench.plan.plan import Plan
from fedbench.report.files import REPORTS, REPRODUCED, write_forms
from fedbench.report.numbers import described
from fedbench.report.numbers.origin import Behind, provenance, runs_behind, trained_on
from fedbench.report.numbers.shipped import Shipped
from fedbench.report.tables.latex_text import breakable, escape

UNKNOWN = "not known"


@dataclass(frozen=True)
class Item:
    """What is asked, who asks it, and the facts that answer."""

    about: str
    asked: str
    facts: list[str]


def build(plan: Plan) -> list[Path]:
    """Write ``reports/<paper>-checklist.{md,tex}`` and return the paths."""
    items = fill(plan)
    title = f"{plan.study.title}: facts for checklists, scale {plan.scale.name}"
    forms = {"md": markdown(title, items), "tex": latex(title, items)}
    return write_forms(REPORTS / f"{plan.study.key}-checklist", forms)


def fill(plan: Plan) -> list[Item]:
    """Return the items with the facts of all cells of a paper at a scale, trained here or shipped."""
    behind = runs_behind(plan.cells(), Shipped(plan))
    filled = [
        ("Seeds and repetitions", "NeurIPS 4, 7; results", _seeds(plan, behind)),
        ("Error bars", "NeurIPS 7; results", _error_bars(behind)),
        ("Search space, trials and choice", "NeurIPS 6; results", _search(plan, behind)),
        ("Hyper-parameters", "NeurIPS 6; results", _values(plan)),
        ("Data and splits", "NeurIPS 6; datasets", _splits(plan)),
        ("Compute of a run and of all", "NeurIPS 8; results", _compute(behind)),
        ("Hardware", "NeurIPS 8; results", _hardware(behind)),
        ("Energy", "results", _energy(behind)),
        ("Sources and licences", "NeurIPS 5, 12; datasets", _licences(plan)),
        ("Code and versions", "NeurIPS 5; code", _code(plan, behind)),
    ]
    return [Item(about, asked, facts or [f"{UNKNOWN.capitalize()}."]) for about, asked, facts in filled]


def markdown(title: str, items: Sequence[Item]) -> str:
    """Return the items as Markdown."""
    parts = [f"# {title}"]
    for item in items:
        parts.append(f"## {item.about} ({item.asked})")
        parts.append("\n".join(f"* {fact}" for fact in item.facts))
    return "\n\n".join([*parts, ""])


def latex(title: str, items: Sequence[Item]) -> str:
    r"""Return the items as LaTeX for ``\input``; it needs no package."""
    lines = [rf"\subsection*{{{escape(title)}}}"]
    for item in items:
        lines += [rf"\paragraph{{{escape(item.about)}}} ({escape(item.asked)})", r"\begin{itemize}"]
        lines += [rf"\item {breakable(fact)}" for fact in item.facts]
        lines.append(r"\end{itemize}")
    return "\n".join([*lines, ""])


def _seeds(plan: Plan, behind: Sequence[Behind]) -> list[str]:
    if not behind:
        shipped = sorted(path.parent.name for path in REPRODUCED.glob(f"*/{plan.study.key}.csv"))
        at = ", ".join(f"--scale {name}" for name in shipped)
        return [
            f"Not known: no run of this scale has ended{f'; some of others are shipped ({at})' if at else ''}."
        ]
    seeds: dict[str, list[int]] = {}
    for run in behind:
        seeds.setdefault(run.cell.name, []).append(run.spec.seed)
    counts = Counter(", ".join(map(str, sorted(of_cell))) for of_cell in seeds.values())
    fixed = any(run.spec.data.draw is not None for run in behind)
    return [
        *(f"{count} cells with the seeds {which}." for which, count in counts.most_common()),
        f"{len(plan.cells()) - len(seeds)} of {len(plan.cells())} cells have not run.",
        "A seed draws weights, mini-batches and participants"
        + (
            "; the data are drawn once."
            if fixed
            else ", and which samples are dropped, held out and dealt to whom."
        ),
    ]


def _error_bars(behind: Sequence[Behind]) -> list[str]:
    if not behind:
        return []
    alone = sum(count == 1 for count in Counter(run.cell.name for run in behind).values())
    diverged = [f"{run.cell.name} seed {run.spec.seed}" for run in behind if not run.finished]
    return [
        "± is the standard deviation over seeds (divided by n - 1), not the standard error.",
        "Verdicts beside print: 90 % intervals of prediction by Student's t. Claims: tests paired by seed, after Holm.",
        f"Cells with one seed, and so without an error bar: {alone}.",
        f"Runs that diverged, whose cells have no mean: {', '.join(diverged) or 'none'}.",
    ]


def _search(plan: Plan, behind: Sequence[Behind]) -> list[str]:
    facts, measured = [], list({run.cell.name: run.cell for run in behind}.values())
    for method in dict.fromkeys(cell.method for cell in measured):
        space = "; ".join(_ranges(plan.study.methods[method].grid)) or "none"
        facts.append(f"Search space of {method}: {space}.")
    trials: dict[tuple[Path, str], str] = {}
    for cell in measured:
        tuned = plan.tuned(cell)
        tried = read_tuned_file(tuned.path).get("scores", {}).get(cell.method, [])
        by, held = (tuned.protocol.get(name) or UNKNOWN for name in ("metric", "validation"))
        said = f"{len(tried) or UNKNOWN} trials, chosen by {by} (held out for them: {held})"
        if tuned.values:
            trials.setdefault((tuned.path, cell.method), f"{cell.method} on {cell.dataset}: {said}.")
    return [*facts, *trials.values(), *described.chosen(plan, measured)]


def _ranges(grid: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the values of each hyper-parameter of a grid, also of those that are tried together."""
    ranges = []
    for names, rows in grid.items():
        several = names.split(", ")
        columns = zip(*rows, strict=True) if len(several) > 1 else [rows]
        for name, values in zip(several, columns, strict=True):
            ranges.append(f"{name} {', '.join(dict.fromkeys(map(str, values)))}")
    return ranges


def _values(plan: Plan) -> list[str]:
    places = f"{CONFIG_DIR}/papers/{plan.study.key}.yaml and {CONFIG_DIR}/tuned/{plan.study.key}"
    return [
        f"All values stand in {places}; `fedbench show CELL` prints those of a cell with the source of each."
    ]


def _splits(plan: Plan) -> list[str]:
    firsts = {cell.dataset: cell.runs[0] for cell in reversed(plan.cells())}
    rows = data_rows([(name, run.data, run.seed) for name, run in firsts.items()], plan.config.data_dir)
    facts = []
    for row in reversed(rows):
        data, seed = firsts[row.dataset].data, firsts[row.dataset].seed
        sizes = f"sizes {UNKNOWN} (not prepared here)"
        if row.train is not None:
            sizes = (
                f"{row.train} training, {row.validation} validation, {row.test} test samples (seed {seed})"
            )
        held = (
            "the dataset's own part"
            if data.validation == "own"
            else f"{data.validation:g} of the training samples"
        )
        facts.append(
            f"{row.dataset}: {sizes}; held out for validation in the runs: {held if data.held_out else 'nothing'}; "
            f"{data.clients} clients, dealt by the rule {data.partition.rule}, dropped by {data.imbalance.rule}."
        )
    return facts


def _compute(behind: Sequence[Behind]) -> list[str]:
    if not behind:
        return []
    facts = []
    for dataset in dict.fromkeys(run.cell.dataset for run in behind):
        runs = [run for run in behind if run.cell.dataset == dataset]
        known = [run.seconds for run in runs if math.isfinite(run.seconds)]
        time = f"time {UNKNOWN}"
        if known:
            span = f"{duration(min(known))} to {duration(max(known))}"
            time = f"{duration(sum(known) / len(known))} a run on average ({span})"
        facts.append(f"{dataset}: {len(runs)} runs, {time}.")
    timed = [run.seconds for run in behind if math.isfinite(run.seconds)]
    total = f"{duration(sum(timed))} of training and evaluation" if timed else UNKNOWN
    return [
        *facts,
        f"All runs together: {total}; {len(timed)} of {len(behind)} runs are timed.",
        f"Trials of hyper-parameters, and runs that no table shows: {UNKNOWN}.",
    ]


def _hardware(behind: Sequence[Behind]) -> list[str]:
    counts = Counter(run.hardware or UNKNOWN for run in behind)
    facts = [f"{name}: {count} runs." for name, count in counts.most_common()]
    return [*facts, f"Memory: {UNKNOWN}."] if facts else []


def _energy(behind: Sequence[Behind]) -> list[str]:
    hours = sum(run.seconds for run in behind if math.isfinite(run.seconds)) / 3600
    said = f"{UNKNOWN.capitalize()}: it was not measured. Hours of training: {hours:.1f}, a thread each."
    return [said] if hours else []


def _licences(plan: Plan) -> list[str]:
    facts = [f"{data.title}: {data.licence}. Source: {data.source}." for data in trained_on(plan.cells())]
    return [*facts, "fedbench: Apache-2.0."]


def _code(plan: Plan, behind: Sequence[Behind]) -> list[str]:
    if not behind:
        return []
    commits = sorted({commit for run in behind for commit in run.commits})
    versions = provenance(plan.cells())["versions"]
    named = ", ".join(f"{name} {' and '.join(several)}" for name, several in versions.items())
    locked = Path("requirements.lock").is_file()
    return [
        f"The runs were made by the commits {', '.join(commits) or UNKNOWN}.",
        f"Versions, of the runs that were trained here: {named or UNKNOWN}.",
        "requirements.lock has the versions of all packages, with hashes."
        if locked
        else f"Lock file: {UNKNOWN}.",
    ]
