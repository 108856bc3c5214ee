"""What can be said of the numbers of a table: functions from their frame to a sentence or nothing.

The frame is that of :func:`~fedbench.results.compare.comparisons`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import pandas as pd

from fedbench.report import verdict_words
from fedbench.results import degenerate_runs
from fedbench.results.frame import NOT_RUN
from fedbench.results.names import ABSENT, SHIPPED
from fedbench.results.published_verdicts import MATCHES, ONE_SEED
from fedbench.results.verdicts import BOUND

LONGEST_LIST = 8
"""A list of troubled cells longer than this ends in a count: the CSV has them all."""


def listed(head: str, texts: Iterable[str]) -> str:
    """Join a heading and texts into one sentence; repeated ones count once. Empty without any."""
    unique = list(dict.fromkeys(texts))
    if not unique:
        return ""
    more = f" … and {len(unique) - LONGEST_LIST} more, see the CSV" if len(unique) > LONGEST_LIST else ""
    shown = ". ".join(text.rstrip(".") for text in unique[:LONGEST_LIST])
    return f"{head[0].upper()}{head[1:]}: {shown}{more}."


def _at(rows: pd.DataFrame, texts: Iterable[str]) -> list[str]:
    """Say something of places; a table of one place has no name for it."""
    return [": ".join(filter(None, pair)) for pair in zip(rows["where"], texts, strict=True)]


def signs(frame: pd.DataFrame, tolerance: float, dashes: bool) -> str:
    """Explain the signs of a table, as far as they occur."""
    kinds = {*frame.loc[frame["difference"].notna(), "verdict"]}
    verdicts = ", ".join(
        f"{sign} {kind.removesuffix(' print')}"
        for kind, sign in verdict_words.SYMBOLS.items()
        if kind in kinds
    )
    shipped = frame[frame["shipped"]]
    some = ", or not with all seeds" if shipped["partly"].any() else ""
    marks = {
        "Bold: best": frame.loc[frame["n_seeds"] > 0, "method"].nunique() > 1,
        f"{verdict_words.SYMBOLS[ONE_SEED]}: one seed": (frame["basis"] == ONE_SEED).any(),
        f"{verdict_words.EDGE}: a tuned value lies on the edge of its grid": frame["on_edge"].any(),
        f"{SHIPPED}: not trained here{some}": len(shipped),
        "†: doubtful": frame.loc[(frame["status"] != NOT_RUN) | dashes, "doubt"].any(),
        f"{ABSENT}: not run": dashes,
    }
    said = "; ".join(mark for mark, occurs in marks.items() if occurs)
    parts = [f"{verdicts} (tolerance ±{tolerance:g})." if kinds else "", f"{said}." if said else ""]
    return " ".join(filter(None, parts))


def score(frame: pd.DataFrame, proposed: Collection[str], label: Callable[[str], str]) -> str:
    """Count the verdicts on what has run, those of the proposed methods apart from their rivals'."""
    ran = frame[frame["printed"].notna() & (frame["verdict"] != NOT_RUN)]
    of_paper = ran["method"].isin(proposed)
    if not of_paper.any() or of_paper.all():
        return f"Verdicts: {_counts(ran)}."
    names = ", ".join(map(label, ran.loc[of_paper, "method"].unique()))
    return f"Verdicts: {names} {_counts(ran[of_paper])}; rivals {_counts(ran[~of_paper])}."


def _counts(frame: pd.DataFrame) -> str:
    counts = Counter(map(verdict_words.name, frame["verdict"], frame["basis"]))
    first = [f"{kind}{one}" for kind in verdict_words.SYMBOLS for one in ("", f" ({ONE_SEED})")]
    order = [*first, *sorted(set(counts) - {*first})]
    words = {kind: kind.replace(MATCHES, "match").replace(" print", "") for kind in order}
    return ", ".join(f"{counts[kind]} {words[kind]}" for kind in order if counts[kind])


def bounds(frame: pd.DataFrame) -> str:
    """Say how measured numbers lie to printed bounds, which give no verdict; empty where there are none."""
    pairs = frame[frame["verdict"] == BOUND]
    within = (pairs["mean"] <= pairs["printed"]).sum()
    return f"The paper gives bounds: {within} of {len(pairs)} means lie within theirs." if len(pairs) else ""


def absent(frame: pd.DataFrame) -> str:
    """Say why numbers are missing, where that is known."""
    pending = frame[frame["of_scale"] & (frame["status"] == NOT_RUN)]
    reasons = sorted({*pending["reason"]} - {""})
    return f"Not run: {'; '.join(reasons)}." if reasons else ""


def trouble(frame: pd.DataFrame, status: str) -> str:
    """List the cells of a status with the reason of each."""
    rows = frame[frame["shown"] & (frame["status"] == status)]
    return listed(status, _at(rows, rows["reason"]))


def idle_runs(frame: pd.DataFrame, word: str) -> str:
    """List the runs that learned nothing or are stuck, as ``word`` says."""
    rows = frame[frame["shown"] & frame["idle"].map(lambda words: word in words)]
    return listed(degenerate_runs.MEANING[word], _at(rows, [_seeds(words[word]) for words in rows["idle"]]))


def _seeds(seeds: Sequence[int | str]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def moving(frame: pd.DataFrame) -> str:
    """Count the results that were still changing at the end of training, by more than what matters in a fifth of it."""
    known = frame[frame["shown"] & (frame["mean"] + frame["pace"]).notna() & (frame["matters"] > 0)]
    late = known[known["moving"] != ""]
    if late.empty:
        return ""
    limits = " or ".join(sorted({f"{limit:g}" for limit in late["matters"]}))
    return (
        f"{len(late)} of {len(known)} curves had not levelled off (more than {limits} in the last "
        "fifth before the step size was reduced); longer training may change these results."
    )


def moved(frame: pd.DataFrame) -> str:
    """List by how much numbers still changed in the last fifth of training, those that did most first."""
    rows = frame[frame["shown"] & (frame["moving"] != "")]
    most = (rows["pace"].abs() / rows["matters"]).sort_values(ascending=False, kind="stable").index
    return listed("still changing", _at(rows.loc[most], rows.loc[most, "moving"]))


def doubts(frame: pd.DataFrame) -> str:
    """List where the print is in doubt."""
    rows = frame[(frame["doubt"] != "") & (frame["status"] != NOT_RUN)]
    return listed("†", _at(rows, rows["doubt"]))


def origin(frame: pd.DataFrame) -> str:
    """Say where shipped numbers come from: scale, seeds, code and hardware."""
    lines = []
    for (dataset, scale, seeds), rows in frame[frame["shipped"]].groupby(
        ["dataset", "scale", "n_seeds"], sort=False
    ):
        code = ", ".join(sorted({commit for text in rows["commit"] for commit in text.split()}))
        machines = {name for text in rows["hardware"] for name in text.split("; ")} - {""}
        hardware = "".join(f", {name}" for name in sorted(machines))
        count = "one seed" if seeds == 1 else f"{seeds} seeds"
        lines.append(f"{dataset} at scale {scale}, {count} (code {code}{hardware})")
    return f"{SHIPPED}: {'; '.join(lines)}." if lines else ""


def hardware(frame: pd.DataFrame) -> str:
    """List the means over seeds that ran on different hardware, whose rounding differs."""
    rows = frame[frame["shown"] & frame["hardware"].str.contains("; ")]
    return listed(
        "means over seeds of different hardware", _at(rows, rows["hardware"].str.replace("; ", ", "))
    )


def printed(frame: pd.DataFrame) -> str:
    """Say what a number of the paper is."""
    with_spread = frame[frame["printed_std"].notna()]
    spreads = sorted({*with_spread["spread"]})
    if not spreads:
        return "Δ: ours − published. Published without a spread."
    if spreads == ["std"]:
        counts = sorted({*with_spread["print_seeds"].dropna().astype(int)})
        runs = " ".join(filter(None, [" or ".join(map(str, counts)), "runs"]))
        return f"Δ: ours − published. Published: mean ± standard deviation over {runs}."
    kind = " or ".join(spreads) + ", not a spread over seeds" * ("std" not in spreads)
    return f"Δ: ours − published. The published ± is a {kind} (see the CSV)."


def verdicts(frame: pd.DataFrame, tolerance: float) -> str:
    """State the rule by which values were compared."""
    rows = frame[frame["half_width"].notna()]
    counts = sorted({*rows["print_seeds"].fillna(1).astype(int)})
    runs = "one run" if counts in ([], [1]) else f"{' or '.join(map(str, counts))} runs"
    runs = "its own runs with their spread" if rows["comparable_std"].notna().any() else runs
    single = (frame["basis"] == ONE_SEED).any()
    return verdict_words.sentences(tolerance, len(rows) > 0, bool(single), runs)


def devices(frame: pd.DataFrame) -> str:
    """Hold our variance over devices against the printed one."""
    ours = frame["device_variance"].dropna()
    in_print = frame.loc[frame["spread"] == "device variance", "printed_std"].dropna()
    if ours.empty or in_print.empty:
        return ""
    return (
        f"Variance over devices, which is what the paper's ± is: at most {ours.max():.2g} in ours, "
        f"at most {in_print.max():g} published (each value is in the CSV)."
    )
