"""The picture of the README: what is printed and what was measured, from the files of both. `make picture` runs it."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from fedbench.report.figures.render import small_svg
from fedbench.report.figures.style import RC, styles_of_methods
from fedbench.results.published import load_published
from fedbench.study.configuration import load_paper

MEASURED = Path("reproduced/reduced/localscgdam.csv")
TARGET = Path("docs/pictures/fashionmnist.svg")


def main() -> None:
    """Draw test AUC on FashionMNIST: the printed value open, ours filled with its standard deviation."""
    runs = pd.read_csv(MEASURED).query("dataset == 'FashionMNIST' and imratio == 0.1")
    diverged = set(runs[runs["status"] == "diverged"].set_index(["method", "p"]).index)
    runs = runs[runs["metric"] == "test_auc"]
    rows = runs.groupby(["method", "p"])["value"].agg(["mean", "std", "count"])
    rows = rows.drop(index=[*diverged], errors="ignore")
    printed = load_published("localscgdam", "localscgdam_table1.csv")
    methods = [name for name in printed.rows["method"].unique() if name in {*runs["method"]}]
    looks = styles_of_methods(load_paper("localscgdam"))
    in_print = printed.at({"dataset": ["FashionMNIST"], "p": [4, 8, 16], "method": methods}, ["test_auc"])
    with matplotlib.rc_context({**RC, "font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, p in zip(panels, (4, 8, 16), strict=True):
            for height, method in enumerate(reversed(methods)):
                place = ("dataset", "FashionMNIST"), ("p", p), ("method", method)
                known, colour = in_print[place, "test_auc"].printed, looks[method].colour
                if math.isfinite(known):
                    axes.plot(known, height, "o", mfc="white", mec=colour, markersize=6.5, zorder=2)
                if (method, p) in diverged:
                    axes.annotate("diverged", (0.989, height), ha="right", va="center", color=colour)
                    continue
                mean, std, count = rows.loc[(method, p)]
                if math.isfinite(known):
                    axes.plot([known, mean], [height, height], color="#bbbbbb", linewidth=1.2, zorder=1)
                spread = std if count > 1 else None
                axes.errorbar(mean, height, xerr=spread, fmt="o", color=colour, markersize=6.5, zorder=3)
            axes.set_yticks(range(len(methods)), list(reversed(methods)))
            axes.set_ylim(-0.5, len(methods) - 0.5)
            axes.set_title(f"p = {p}")
            axes.set_xlim(0.95, 0.99)
            axes.set_xlabel("test AUC")
        counts = rows["count"].astype(int)
        seeds = " to ".join(str(count) for count in dict.fromkeys((counts.min(), counts.max())))
        title = f"Open: published.  Filled: ours, mean ± standard deviation, {seeds} seeds, 4000 iterations."
        figure.suptitle(title, fontsize=9)
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.write_text(small_svg(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
