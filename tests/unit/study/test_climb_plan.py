"""The paper climb as configured: the authors' mixture of lengths and clients (run_ICLR2022.sh, lines 4-33)."""

from __future__ import annotations

import pytest

from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan


def test_each_method_has_the_rounds_and_clients_of_the_authors_script() -> None:
    plan = Plan(load_config(overrides={"scale": "paper"}), "climb")
    runs = {(cell.setting["horizon"], cell.method): cell.runs[0] for cell in plan.cells("tableA5")}
    mixture = {
        "Baseline": (100, 5000),
        "CLIMB": (100, 5000),
        "Ratio-Loss": (500, 1000),
        "Focal-Loss": (500, 1000),
    }
    for method, (clients, rounds) in mixture.items():
        run, equal = runs["authors", method], runs["scale", method]
        assert (run.data.clients, run.train.rounds) == (clients, rounds)
        assert run.train.participation.clients == (100 if clients == 500 else None)
        assert (equal.data.clients, equal.train.rounds) == (100, 1000)
        assert run.params == equal.params and run.data.imbalance == equal.data.imbalance


@pytest.mark.parametrize("scale", ["demo", "reduced"])
def test_rounds_that_no_scale_shortens_are_not_run_at_the_short_ones(scale: str) -> None:
    cells = Plan(load_config(overrides={"scale": scale}), "climb").cells()
    assert {cell.setting["horizon"] for cell in cells} <= {"scale", 300}
