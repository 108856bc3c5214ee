"""A forest plot of hospitals: a row each, methods apart, intervals over their test patients."""

from __future__ import annotations

from typing import Any

import pytest
from report_project import Project, localscgdam

from fedbench.data.summary import Counts
from fedbench.report.figures import build as figures
from fedbench.report.figures import forest
from fedbench.results.auc_interval import auc_interval
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

SITES = ["test_auc", "test_auc@Basel", "test_auc@Lyon"]
COUNTS = {"": Counts(70, 30, 40), "Basel": Counts(60, 28, 32), "Lyon": Counts(10, 2, 8)}
FOREST: dict[str, Any] = {
    "title": "Test AUC in each hospital",
    "kind": "forest",
    "panels": "dataset",
    "datasets": ["CIFAR10"],
    "methods": ["CoDA", "LocalSGDM"],
    "settings": {"p": [4]},
    "metrics": SITES,
}
CODA = {"Basel": [0.9, 0.8, 0.7], "Lyon": [0.5, 0.6, 0.4]}


@pytest.fixture
def cells(project: Project, reduced: Config, monkeypatch: pytest.MonkeyPatch) -> dict[str, Cell]:
    """The cells of the figure by their methods, without results; the test samples are counted."""
    paper = localscgdam()
    paper["figures"] = {"figure1": FOREST}
    project.save_paper("localscgdam", paper)
    monkeypatch.setattr(forest, "tested", lambda plan, place: COUNTS)
    return {cell.method: cell for cell in project.cells("localscgdam", "figure1", reduced)}


def finish(project: Project, cell: Cell, values: dict[str, list[float]]) -> None:
    """Give each seed its AUC in each hospital, and 0.75 over all."""
    project.finish(cell, [0.75] * 3)
    runs = [
        {
            **{"seed": run.seed, "key": run.key, "status": "finished", "reason": ""},
            "metrics": {"test_auc": 0.75} | {f"test_auc@{site}": of[i] for site, of in values.items()},
            "provenance": {},
        }
        for i, run in enumerate(cell.runs)
    ]
    project.write(cell, runs)


def make(config: Config) -> figures.Drawing:
    return figures.drawing_of(Plan(config), "figure1")


def test_points_are_the_means_of_each_hospital_with_the_interval_of_its_patients(
    project: Project, cells: dict[str, Cell], reduced: Config
) -> None:
    assert make(reduced).points.empty, "nothing has run"
    finish(project, cells["CoDA"], CODA)
    drawn = make(reduced).points
    assert drawn[["metric", "curve", "x"]].to_numpy().tolist() == [
        [name, "CoDA", row] for row, name in enumerate(SITES)
    ]
    assert drawn["mean"].tolist() == pytest.approx([0.75, 0.8, 0.5])
    expected = [auc_interval(mean, n.positive or 0, n.negative or 0)
                for mean, n in zip([0.75, 0.8, 0.5], COUNTS.values(), strict=True)]  # fmt: skip
    assert drawn[["low", "high"]].to_numpy().tolist() == [pytest.approx(ends) for ends in expected]
    assert drawn[["positives", "negatives"]].to_numpy().tolist() == [[30, 40], [28, 32], [2, 8]]


def test_methods_of_a_row_stand_apart_and_each_seed_is_a_dot(
    project: Project, cells: dict[str, Cell], reduced: Config
) -> None:
    finish(project, cells["CoDA"], CODA)
    finish(project, cells["LocalSGDM"], {"Basel": [0.6] * 3, "Lyon": [0.7] * 3})
    drawing = make(reduced)
    (axes,) = drawing.picture.axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["all test samples (30 of 70)", "Basel (28 of 60)", "Lyon (2 of 10)"]
    top, bottom = axes.get_ylim()
    assert top > bottom, "the first row is the highest"
    coda, sgdm = (line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 3)  # type: ignore[arg-type]
    assert all(0.3 < below - above < 1 for above, below in zip(coda, sgdm, strict=True))  # type: ignore[arg-type]
    dots = axes.collections[0].get_offsets()
    assert sorted(dots[:, 0]) == pytest.approx(sorted([0.75] * 3 + CODA["Basel"] + CODA["Lyon"]))
    assert axes.get_xlabel() == "test AUC" and "draw of test samples" in drawing.words
    alone = make(reduced.model_copy(update={"seeds": [0]}))
    assert "over 1 seed, dots: each seed, bars: 90%" in alone.words, "bars are explained for one seed too"


def test_a_hospital_without_a_number_says_why_in_its_row(
    project: Project, cells: dict[str, Cell], reduced: Config
) -> None:
    finish(project, cells["CoDA"], {"Basel": CODA["Basel"], "Lyon": [float("nan")] * 3})
    finish(project, cells["LocalSGDM"], {"Basel": [0.6] * 3, "Lyon": [0.7] * 3})
    (axes,) = make(reduced).picture.axes
    said = [(text.get_text(), round(text.get_position()[1])) for text in axes.texts if text.get_text()]
    assert said == [("undefined", SITES.index("test_auc@Lyon"))]


def test_without_the_data_there_are_no_counts_and_no_intervals(
    project: Project, cells: dict[str, Cell], reduced: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(project, cells["CoDA"], CODA)
    monkeypatch.setattr(forest, "tested", lambda plan, place: {})
    drawing = make(reduced)
    assert "bars" not in drawing.words and "not prepared here" in drawing.words
    assert drawing.points["low"].isna().all() and drawing.points["mean"].notna().all()
    assert drawing.picture.axes[0].get_yticklabels()[1].get_text() == "Basel"
