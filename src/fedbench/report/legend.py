"""How a table of results is read: what its numbers are and how they are made, what letters and signs mean."""

from __future__ import annotations

import pandas as pd

from fedbench.report import described, verdict_words
from fedbench.report.layout import METRIC
from fedbench.results import rates
from fedbench.results.frame import INCOMPLETE
from fedbench.results.names import AVERAGE, SHIPPED, SLOPE, axis_name, capital
from fedbench.results.statistics import runs_of_print
from fedbench.results.verdicts import ONE_SEED
from fedbench.study.schema import Paper, TableSpec


def numbers(paper: Paper, spec: TableSpec, frame: pd.DataFrame) -> str:
    """Say what a number is, empty where there is none; those of single sites are named by their columns or rows."""
    of_all = dict.fromkeys(metric.partition("@")[0] for metric in spec.metrics)
    first, *others = [paper.measure(metric).label for metric in of_all]
    apart = METRIC in (*spec.rows, *spec.columns)
    what = first + "".join(f", {name}" if apart else f" ({name})" for name in others)
    if not (frame["n_seeds"] > 0).any():
        return f"Published: {what}." if frame["printed"].notna().any() else ""
    several = (frame["n_wanted"] > 1).any()
    return f"{capital(what)}: {'mean ± standard deviation over seeds' if several else 'one seed'}."


def letters(paper: Paper, frame: pd.DataFrame) -> str:
    """Explain the settings that headings call by a letter, empty without any."""
    varying = [n for n in paper.settings if len({at.get(n) for at in frame["at"]}) > 1]
    names = {axis_name(paper, name): paper.settings[name].label for name in varying}
    said = [f"{name}: {label}" for name, label in names.items() if len(name) == 1 and len(label) > 1]
    return f"{'; '.join(said)}." if said else ""


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
    partly = "(partly) " if shipped["trained"].any() else ""
    marks = {
        f"Bold: best in {line}": several,
        f"{verdict_words.SYMBOLS[ONE_SEED]}: one seed": (frame["basis"] == ONE_SEED).any(),
        f"{verdict_words.EDGE}: a tuned value lies on the edge of its grid": frame["on_edge"].any(),
        f"{SHIPPED}: {partly}reference results, {described.counted(seeds, 'seed')}": len(shipped),
        f"in brackets: {verdict_words.LEVEL_TEXT} of a gain": frame["low"].notna().any(),
    }
    said = "; ".join(mark for mark, occurs in marks.items() if occurs)
    compares, interval = frame["difference"].notna().any(), frame["half_width"].notna().any()
    rule = verdict_words.legend(tolerance, bool(interval)) if compares else ""
    return " ".join(filter(None, [rule, f"{capital(said)}." if said else ""]))


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
        f"{capital(said)}; with the hyper-parameters and as many steps as federated. The gain is federated "
        f"minus {spec.references[0]}, seed by seed; in brackets its {verdict_words.LEVEL_TEXT} over seeds and, of an "
        f"AUC, over the draw of test samples, {shared_samples(frame[frame['gain'] & frame['low'].notna()])}."
    )


def shared_samples(gains: pd.DataFrame) -> str:
    """Say how the intervals of gains, with columns ``label`` and ``paired``, take it that both models share samples."""
    apart = "as if the models had not shared these, which is wide"
    if not gains["paired"].any():
        return apart
    paired = "paired over these (DeLong et al. 1988)"
    rest = ", ".join(gains.loc[~gains["paired"], "label"].unique())
    return f"{paired}; that of {rest} {apart}" if rest else paired


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


def published(frame: pd.DataFrame) -> str:
    """Say for each kind of ± in print what it is, and as how many runs print counts in intervals."""
    frame = frame[frame["difference"].notna()]
    kinds = frame["spread"].where(frame["printed_std"].notna(), "no spread"), frame["comparable_std"].notna()
    counts = pd.Series(runs_of_print(frame["comparable_std"], frame["print_seeds"]), frame.index)
    said = []
    for (spread, known), of_kind in counts.groupby([*kinds]):
        what = f"Published with {str(spread).replace('std', 'standard deviation over runs')}"
        runs = " or ".join(described.counted(n, "run") for n in sorted({*of_kind}))
        with_spread = "with this spread" if known else "without a spread"
        said.append(f"{what}; in intervals a published number counts as {runs} {with_spread}.")
    return " ".join(said)
