"""What a table says of all its numbers together: the paper's own methods apart, and what a match tells."""

from __future__ import annotations

from pathlib import Path

from report_project import Project, localscgdam

from fedbench.plan.configuration import load_config
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.tables import build as tables

ROOT = Path(__file__).parents[3]


def test_own_methods_and_rivals_are_counted_apart(project: Project, reduced: Config) -> None:
    """FashionMNIST at p = 4, in print .980 (LocalSCGDAM), .976 (CoDA), .980 (LocalSGDM_RL, at p = 4)."""
    project.save_paper("localscgdam", {**localscgdam(), "proposes": ["LocalSCGDAM"]})
    values = {"LocalSCGDAM": 0.979, "CoDA": 0.978, "LocalSGDM": 0.999}
    for cell in project.cells("localscgdam", "table1", reduced):
        if cell.dataset == "FashionMNIST" and cell.setting["p"] == 4 and cell.method in values:
            project.finish(cell, [values[cell.method] + noise for noise in (-1e-4, 0, 1e-4)])
    text = tables.make(Plan(reduced), "table1").markdown()
    assert "Verdicts: LocalSCGDAM 1 match; rivals 1 match, 1 above." in text
    # .979 and .978 within .01 of all other prints but LocalSGDM's .963: of 8 comparisons with another method 6
    assert "published value in 6 of 8 cases." in text


def test_bounds_give_no_verdict() -> None:
    config = load_config(overrides={"scale": "reduced", "paper": "fcsg"})
    table = tables.make(Plan(config), "table1")
    printed = table.rows[table.rows["published_mean"] != ""]
    assert set(printed["verdict"]) == {"bound"} and printed["difference"].isna().all()
    text = table.markdown()
    assert "The paper prints bounds: 6 of 6 means lie within theirs." in text
    assert "τ" not in text and "≈" not in text
