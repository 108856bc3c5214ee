"""The verdicts of fedbench without fedbench: pandas, SciPy and the files of the repository. For one study and scale,

    python examples/verdicts.py localscgdam reduced

compares each reference result with the published number. examples/claims.py judges the claims; the rules are in
docs/background/verdicts.md.
"""

import itertools
import sys

import numpy as np
import pandas as pd
from scipy import stats
from studies import norm, print_of, runs_of, study_of

TOLERANCE, LEVEL = 0.01, 0.05


def read(study, scale):
    """The YAML of a study, the values of its runs, and which diverged."""
    paper = study_of(study)
    return paper, *runs_of(study, paper, scale)


def places(paper, table):
    """The places of a table: dataset and settings, the default where it names none."""
    spec = paper["tables"].get(table) or paper["figures"][table]
    grid = [
        spec.get("settings", {}).get(name, [entry["default"]]) for name, entry in paper["settings"].items()
    ]
    return [tuple(map(norm, place)) for place in itertools.product(spec["datasets"], *grid)]


def least_spread(values, metric):
    """sqrt(2/12) times the step of a share, which the least difference between two of its values bounds."""
    if metric.endswith(("loss", "norm")) or "_to_" in metric:
        return 0.0
    apart = np.diff(np.sort([0.0, 1.0, *values]))
    return np.sqrt(2 / 12) * apart[apart > 2e-6].min()


def against_print(study, scale):
    """{(table, place, method, metric): matches, above published, below published, inconclusive}."""
    paper, values, diverged = read(study, scale)
    said = {}
    for table, spec in paper["tables"].items():
        if not spec.get("published") or spec.get("kind", "results") != "results" or spec.get("pool"):
            continue
        printed, names = print_of(spec), ["dataset", *paper["settings"]]
        methods = spec.get("methods") or paper["methods"]
        for place, method, metric in itertools.product(places(paper, table), methods, spec["metrics"]):
            ours = np.array([*values.get((place, method, metric), {}).values()])
            if (place, method) in diverged or not len(ours):
                continue
            same = printed["metric"].str.split("_").map(sorted) == pd.Series(
                [sorted(metric.split("_"))] * len(printed)
            )
            same &= printed["method"] == method
            for axis, value in zip(names, place, strict=True):
                same &= printed[axis].map(norm) == value if axis in printed else True
            if not same.any() or np.isnan(printed[same].iloc[0]["mean"]):
                continue
            row = printed[same].iloc[0]
            spread = row["std"] if row["spread"] == "std" else np.nan
            n, off, half = len(ours), ours.mean() - row["mean"], 0.0
            m = np.fmax(row["n_seeds"], 1 if np.isnan(spread) else 2)
            if n > 1:
                beside = [v for other in methods for v in values.get((place, other, metric), {}).values()]
                s = max(ours.std(ddof=1), least_spread(beside, metric))
                parts = np.array([s**2 / n, (s if np.isnan(spread) else spread) ** 2 / m])
                freedom = n - 1 if np.isnan(spread) else parts.sum() ** 2 / (parts**2 / [n - 1, m - 1]).sum()
                half = stats.t.ppf(1 - LEVEL, freedom) * np.sqrt(parts.sum())
            inside, outside = abs(off) + half <= TOLERANCE + 1e-9, abs(off) - half > TOLERANCE + 1e-9
            side = "above published" if off > 0 else "below published"
            said[table, place, method, metric] = "matches" if inside else side if outside else "inconclusive"
    return said


if __name__ == "__main__":
    for where, word in against_print(*sys.argv[1:3]).items():
        print(*where, word, sep="  ")
