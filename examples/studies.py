"""A study, its runs and its print, from the files of the repository; it may extend another study."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

PUBLISHED = Path("published")


def norm(value):
    """0, 0.0 and "0" are one value of a setting."""
    try:
        return str(value) if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return str(value)


def overlaid(base, over):
    """One piece of YAML over another, key by key."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: overlaid(base.get(key), value) for key, value in over.items()}}


def study_of(name):
    """The YAML of a study over that of the one it extends, of whose tables it has those that it names."""
    path = next(
        path for path in Path("config").glob(f"*/{name}.yaml") if path.parent.name in ("papers", "studies")
    )
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    for table in paper.get("tables", {}).values():
        if (file := table.get("published")) and "/" not in file:
            table["published"] = str(PUBLISHED / name / file)
    if "extends" not in paper:
        return paper
    base, shown = study_of(paper["extends"]), {}
    for kind in ("tables", "figures"):
        entries = paper.get(kind, {}).items()
        shown[kind] = {name: overlaid(base.get(kind, {}).get(name, {}), entry) for name, entry in entries}
    return overlaid(base, paper) | shown


def runs_of(name, paper, scale):
    """{(place, method, metric): {seed: value}}; {(place, method): the seeds that diverged}.

    The runs of the study that it extends count where it has none of its own.
    """
    values, diverged = {}, {}
    for study in filter(None, (paper.get("extends"), name)):
        file = Path(f"reproduced/{scale}/{study}.csv")
        more, lost = _read(file, paper["settings"]) if file.exists() else ({}, {})
        again = {key[:2] for key in (*more, *lost)}
        values = {key: seeds for key, seeds in values.items() if key[:2] not in again} | more
        diverged = {key: seeds for key, seeds in diverged.items() if key not in again} | lost
    return values, diverged


def _read(file, settings):
    """The same of one file; a setting that it has no column for has its default."""
    runs = pd.read_csv(file, dtype=str, keep_default_na=False)
    runs = runs.assign(**{name: entry["default"] for name, entry in settings.items() if name not in runs})
    axes = ["dataset", *settings]
    runs[axes] = runs[axes].map(norm)
    values, diverged = {}, {}
    for row in runs[[*axes, "method", "metric", "seed", "value"]].itertuples(index=False):
        *place, method, metric, seed, value = row
        if metric:
            values.setdefault((tuple(place), method, metric), {})[int(seed)] = float(value)
        else:
            diverged.setdefault((tuple(place), method), []).append(int(seed))
    return values, diverged


def print_of(table):
    """The printed numbers of a table with n_seeds and spread; what a file does not say has the index."""
    printed, index = pd.read_csv(table["published"]), pd.read_csv(PUBLISHED / "index.csv", index_col="file")
    file = table["published"].removeprefix(f"{PUBLISHED}/")
    unknown = {"n_seeds": np.nan, "spread": "none", "std": np.nan}
    for name, without in unknown.items():
        said = index[name].get(file, without) if name in index else without
        printed[name] = printed[name].fillna(said) if name in printed else said
    return printed
