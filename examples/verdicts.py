"""The verdicts of fedbench without fedbench: pandas, SciPy and the files of the repository. For one study and scale,

    python examples/verdicts.py localscgdam reduced

prints how each shipped number stands to print. examples/claims.py judges the claims; docs/verdicts.md has the rules.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy import stats

TOLERANCE, LEVEL = 0.01, 0.05


def norm(value):
    """0, 0.0 and "0" are one value of a setting."""
    try:
        return str(value) if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return str(value)


def read(study, scale):
    """The YAML of a study; {(place, method, metric): {seed: value}}; {(place, method): the seeds that diverged}."""
    paper = yaml.safe_load(Path(f"config/papers/{study}.yaml").read_text())
    runs = pd.read_csv(f"reproduced/{scale}/{study}.csv", dtype=str, keep_default_na=False)
    axes = ["dataset", *paper["settings"]]
    runs[axes] = runs[axes].map(norm)
    values, diverged = {}, {}
    for row in runs[[*axes, "method", "metric", "seed", "value"]].itertuples(index=False):
        *place, method, metric, seed, value = row
        if metric:
            values.setdefault((tuple(place), method, metric), {})[int(seed)] = float(value)
        else:
            diverged.setdefault((tuple(place), method), []).append(int(seed))
    return paper, values, diverged


def places(paper, table):
    """The places of a table: dataset and settings, the default where it names none."""
    spec = paper["tables"].get(table) or paper["figures"][table]
    grid = [
        spec.get("settings", {}).get(name, [entry["default"]]) for name, entry in paper["settings"].items()
    ]
    return [tuple(map(norm, place)) for place in itertools.product(spec["datasets"], *grid)]


def against_print(study, scale):
    """{(table, place, method, metric): matches, above print, below print, inconclusive}."""
    paper, values, diverged = read(study, scale)
    index, said = pd.read_csv("tables/published/index.csv").set_index("file"), {}
    for table, spec in paper["tables"].items():
        if not spec.get("published") or spec.get("kind", "results") != "results" or spec.get("pool"):
            continue
        name, names = f"{study}/{spec['published']}", ["dataset", *paper["settings"]]
        printed = pd.read_csv(f"tables/published/{name}")
        for place, method, metric in itertools.product(
            places(paper, table), spec["methods"], spec["metrics"]
        ):
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
            row, m = printed[same].iloc[0], index["n_seeds"][name]
            spread = row["std"] if index["spread"][name] == "std" else np.nan
            n, off, half = len(ours), ours.mean() - row["mean"], 0.0
            m = np.fmax(m, 1 if np.isnan(spread) else 2)
            if n > 1:
                s = ours.std(ddof=1)
                parts = np.array([s**2 / n, (s if np.isnan(spread) else spread) ** 2 / m])
                freedom = n - 1 if np.isnan(spread) else parts.sum() ** 2 / (parts**2 / [n - 1, m - 1]).sum()
                half = stats.t.ppf(1 - LEVEL, freedom) * np.sqrt(parts.sum())
            inside, outside = abs(off) + half <= TOLERANCE + 1e-9, abs(off) - half > TOLERANCE + 1e-9
            side = "above print" if off > 0 else "below print"
            said[table, place, method, metric] = "matches" if inside else side if outside else "inconclusive"
    return said


if __name__ == "__main__":
    for where, word in against_print(*sys.argv[1:3]).items():
        print(*where, word, sep="  ")
