"""The words around a table of results: a caption that says what was run, and notes, of which most list and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.report import described, legend, verdict_words
from fedbench.results import compare, run_facts, verdicts
from fedbench.results.frame import DIVERGED, FAILED, INCOMPLETE, NOT_RUN, UNDEFINED
from fedbench.results.names import SHIPPED, axis_text, capital
from fedbench.results.verdicts import BOUND, MATCHES
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper

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
        run += f"; {SHIPPED}: reference results at scale {', '.join(others)}"
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
    marks = legend.letters(paper, frame), legend.signs(spec, frame, plan.config.tolerance)
    first = [legend.numbers(paper, spec, frame), *marks]
    left_out = frame["status"] == NOT_RUN
    shown = frame if left_out.all() else frame[~left_out]
    doubts, datasets = shown[shown["doubt"] != ""], {*shown["dataset"]}
    ours = {name: of.note for name, of in paper.datasets.items() if name in datasets and not of.printed}
    notes = [
        " ".join(filter(None, first)),
        f"{', '.join(ours)}: not in the paper; there is no published value." if ours and spec.published else "",
        described.other_data(cells, made["data"], folder),
        described.other_code(cells, made["other_code"]),
        *(trouble(frame, status) for status in (NOT_RUN, FAILED)),
        untuned(plan.named_untuned(not_tuned)),
        outcome(paper, frame),
        order(frame),
        legend.references(spec, frame),
        gains(paper, frame),
        described.repeated(cells, folder) if frame["low"].notna().any() else "",
        *described.weights(cells),
        *described.tasks(cells, folder),
        *(described.sites(cells, folder) if any("site_" in m or "@" in m for m in spec.metrics) else []),
        *(f"{note.rstrip('.')}." for note in ours.values() if note),
        *(trouble(frame, status) for status in (DIVERGED, UNDEFINED, INCOMPLETE)),
        *(idle_runs(frame, word) for word in run_facts.MEANING),
        moving(frame, any(run.train.decay_at for cell in cells for run in cell.runs)),
        listed("† doubtful in print", _at(doubts, doubts["doubt"])),
        listed("published, but in no table of this study", compare.unknown_names(paper, spec)),
    ]  # fmt: skip
    return [note for note in notes if note]


def untuned(named: str) -> str:
    """Say which methods, as :meth:`Plan.named_untuned` has them, are not tuned for their dataset; empty without any."""
    return f"Not tuned for this dataset: the order of methods says nothing ({named})." if named else ""


def listed(head: str, texts: Iterable[str]) -> str:
    """Join a heading and texts into one sentence; repeated ones count once. Empty without any."""
    unique = list(dict.fromkeys(texts))
    if not unique:
        return ""
    more = f" … and {len(unique) - LONGEST_LIST} more, see the CSV" if len(unique) > LONGEST_LIST else ""
    shown = ". ".join(text.rstrip(".") for text in unique[:LONGEST_LIST])
    return f"{capital(head)}: {shown}{more}."


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
    over = f" on average over {len(taus)} comparisons ({' to '.join(ends)})" if len(taus) > 1 else ""
    return f"Kendall's τ of the order of methods with the published one: {mean}{over}."


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
