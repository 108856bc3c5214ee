"""The picture of the README: what is printed and what was measured, from the files of both. `make picture` runs it."""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from fedbench.report.figures.style import RC, style_of
from fedbench.report.numbers.published import load

MEASURED = Path("reproduced/reduced/localscgdam/table1.csv")
TARGET = Path("docs/pictures/fashionmnist.svg")


def main() -> None:
    """Draw test AUC on FashionMNIST: the printed value open, ours filled with its standard deviation."""
    printed = load("localscgdam", "localscgdam_table1.csv")
    with MEASURED.open(newline="", encoding="utf-8") as file:
        ran = [
            row
            for row in csv.DictReader(file)
            if row["dataset"] == "FashionMNIST" and row["status"] != "not run"
        ]
    rows = [row for row in ran if row["mean"]]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with matplotlib.rc_context({**RC, "font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, p in zip(panels, ("4", "8", "16"), strict=True):
            for height, method in enumerate(reversed(methods)):
                (row,) = [row for row in ran if row["method"] == method and row["p"] == p]
                paper = printed.find("FashionMNIST", method, {"p": int(p)}, "test_auc")
                colour = style_of(method).colour
                if not row["mean"]:
                    axes.annotate(row["status"], (0.985, height), ha="center", va="center", color=colour)
                    if paper is not None and paper.mean is not None:
                        axes.plot(paper.mean, height, "o", mfc="white", mec=colour, markersize=6.5, zorder=2)
                    continue
                mean = float(row["mean"])
                if paper is not None and paper.mean is not None:
                    axes.plot([paper.mean, mean], [height, height], color="#bbbbbb", linewidth=1.2, zorder=1)
                    axes.plot(paper.mean, height, "o", mfc="white", mec=colour, markersize=6.5, zorder=2)
                spread = float(row["std"]) if row["std"] else None  # one seed has none
                axes.errorbar(mean, height, xerr=spread, fmt="o", color=colour, markersize=6.5, zorder=3)
            axes.set_yticks(range(len(methods)), list(reversed(methods)))
            axes.set_title(f"p = {p}")
            axes.set_xlim(0.95, 0.99)
            axes.set_xlabel("test AUC")
        seeds = "; ".join(f"p = {p}: {_seeds(rows, p)}" for p in ("4", "8", "16"))
        title = f"Open: as printed.  Filled: measured here, 4000 iterations.  Seeds: {seeds}."
        figure.suptitle(title, fontsize=9)
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(TARGET, metadata={"Date": None, "Creator": "fedbench"})


def _seeds(rows: list[dict[str, str]], p: str) -> str:
    """Return how many seeds the rows of one period have, ``1 to 3`` where they differ."""
    counts = sorted({int(row["n_seeds"]) for row in rows if row["p"] == p})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


if __name__ == "__main__":
    main()
