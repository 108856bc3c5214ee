"""From a table of runs to what claims are held against, on a literal frame."""

from __future__ import annotations

import math

import pandas as pd

from fedbench.plan.configuration import load_paper
from fedbench.report.numbers.evidence import numbers_of
from fedbench.report.numbers.rows import Row
from fedbench.report.numbers.runs import OF_CELL

PLACE = (("dataset", "FashionMNIST"), ("p", 4))


def test_a_run_that_diverged_has_the_worst_of_each_metric_and_what_lacks_has_no_row() -> None:
    """Cell k1 was trained here but for seed 2; k2 was shipped, as one run and an average over seeds."""
    rows = [
        ("k1", Row("a", 0, "test_auc", 0.9, pace=0.01)),
        ("k1", Row("b", 1, "", status="diverged")),
        ("k1", Row("", -1, "", status="not run", origin="")),
        ("k2", Row("c", 0, "test_auc", 0.8, origin="shipped")),
        ("k2", Row("c", 0, "samples", 64.0, status="averaged", origin="shipped")),
        ("k2", Row("c", 0, "test_ap", 0.7, origin="shipped")),
    ]
    runs = pd.DataFrame(
        [("localscgdam", "demo", PLACE, cell, cell, 3, *row) for cell, row in rows],
        columns=[*OF_CELL, *Row._fields],
    )
    numbers = numbers_of(runs, ["test_auc", "test_loss", "samples"], load_paper("localscgdam"))
    shown = numbers[["method", "seed", "metric", "value", "shipped"]].to_numpy().tolist()
    assert shown == [
        ["k1", 0, "test_auc", 0.9, False],
        ["k1", 1, "test_auc", -math.inf, False],
        ["k1", 1, "test_loss", math.inf, False],
        ["k2", 0, "test_auc", 0.8, True],
    ]
    assert (numbers["key"] == "k1").tolist() == [True] * 3 + [False], (
        "a cell's own key where it was trained here"
    )
