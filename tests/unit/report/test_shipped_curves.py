"""Curves that are shipped: figures of runs that were not trained here are those of where they were."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from report_project import Project, run_result

from fedbench.errors import UserError
from fedbench.report.figures.build import drawing_of
from fedbench.report.page.gather import chapter
from fedbench.results.export import add_curves, thinned
from fedbench.results.shipped import load_curves
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CURVES = Path("reproduced/reduced/curves/localscgdam.csv")


def shipped(project: Project, config: Config, paper: str = "localscgdam", figure: str = "figure1") -> Plan:
    """Ship what is in the store of a figure's cells, and forget the store."""
    plan = Plan(config, paper)
    add_curves(plan, plan.cells(figure))
    shutil.rmtree(project.root / "results")
    return Plan(config, paper)


def test_a_figure_of_shipped_runs_is_that_of_the_runs_and_says_so(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "figure1", reduced)
    trained = drawing_of(Plan(reduced), "figure1")
    drawing = drawing_of(shipped(project, reduced), "figure1")
    pd.testing.assert_frame_equal(drawing.points, trained.points, rtol=1e-5)
    assert "mean over 3 seeds" in drawing.words and "comes with the repository" in drawing.words
    assert "shipped" not in trained.words
    without = drawing_of(Plan(reduced.model_copy(update={"shipped": False})), "figure1")
    assert without.points.empty and "no curve yet" in without.words


def test_the_page_draws_what_is_shipped_and_no_figure_without_a_curve(
    project: Project, reduced: Config
) -> None:
    """A run that diverged is shipped as one."""
    Path("config/config.yaml").write_text("paper: localscgdam\n")  # commands of cells differ from it
    project.fill("localscgdam", "figure1", reduced)
    first, second = Plan(reduced).cells("figure1")[:2]
    project.write(first, [run_result(run.seed, run.key, {}, "diverged", "nan") for run in first.runs])
    trained = chapter(Plan(reduced))
    assert [drawing.name for drawing in trained.figures] == [*trained.paper.figures]
    page = chapter(shipped(project, reduced))
    (drawing,) = page.figures
    curves = [curve for panel in drawing.content.panels for curve in panel.curves]
    assert drawing.name == "figure1" and [curve.label for curve in curves if curve.broken] == [first.method]
    drawn, before = (
        {view.anchor: picture and words(picture.address) for picture, views in of.groups for view in views}
        for of in (page, trained)
    )
    assert drawn == before and all(drawn[f"reduced/{cell.name}"] for cell in (first, second))


def words(address: str) -> list[str]:
    """The texts of a picture; its lines differ in the digits that are shipped."""
    return re.findall(r"<text[^>]*>([^<]*)", unquote(address))


def test_what_was_trained_here_comes_first_and_other_keys_count_for_nothing(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "figure1", reduced)
    plan = shipped(project, reduced)
    (cell, *_) = plan.cells("figure1")
    levels = drawing_of(plan, "figure1").points.groupby(["panel", "curve"])["mean"].last()
    for run in cell.runs:
        project.write_curve(run.key, {"iteration": [0, 1000], "test_auc": [0.5, 0.6]})
    project.finish(cell, [0.6] * 3)
    now = drawing_of(plan, "figure1").points.groupby(["panel", "curve"])["mean"].last()
    local = (cell.dataset, cell.method)
    assert now[local] == 0.6 < levels[local] and now.drop(local).equals(levels.drop(local))
    other = reduced.model_copy(update={"set": {"train.iterations": 200}})
    assert drawing_of(Plan(other), "figure1").points.empty


def test_at_most_a_hundred_evaluations_are_kept_with_the_first_and_the_last() -> None:
    table = pd.DataFrame({"round": np.repeat(np.arange(0, 5000, 2), 2), "quantity": ["dual", "loss"] * 2500})
    kept = thinned(table)
    assert kept["round"].nunique() == 100 and len(kept) == 200
    assert (kept["round"].iloc[0], kept["round"].iloc[-1]) == (0, 4998)
    assert np.diff(kept["round"].unique()).max() < 2 * np.diff(kept["round"].unique()).min()
    pd.testing.assert_frame_equal(thinned(kept), kept)


def test_seeds_are_added_once_and_a_run_has_no_column_of_another(project: Project) -> None:
    """A figure that asks for it says that there is none, rather than to draw nothing."""
    for seed in (0, 1, 1):
        config = Config(scale="reduced", seeds=[seed])
        project.fill("localscgdam", "figure1", config)
        shipped(project, config)
    rows = pd.read_csv(CURVES)
    cells = Plan(Config(scale="reduced", seeds=[0, 1])).cells("figure1")
    assert set(rows["key"]) == {run.key for cell in cells for run in cell.runs}
    assert (rows.groupby("key").size() == 21).all()
    of_ap, config = cells[0], Config(scale="reduced", seeds=[0])
    project.curve(of_ap.runs[0].key, 0.9, ("test_ap",), np.random.default_rng(0))
    project.finish(of_ap.model_copy(update={"runs": of_ap.runs[:1]}), [0.9], "test_ap")
    add_curves(Plan(config), [of_ap])
    of_runs = load_curves(Plan(config), "curves")
    columns = [{*of_runs[run.key]} & {"test_auc", "test_ap"} for run in of_ap.runs]
    assert columns == [{"test_ap"}, {"test_auc"}]


def test_what_clients_were_traced_for_is_shipped_where_a_figure_shows_it(project: Project) -> None:
    config = Config(scale="reduced", seeds=[0])
    cell = project.cells("climb", "figure2", config)[0]
    folder = project.root / "results" / "runs" / cell.runs[0].key
    folder.mkdir(parents=True)
    rows = [
        {"round": at, "quantity": name, **{f"client{k}": k * at / 100 for k in range(20)}}
        for at in (0, 5, 10)
        for name in ("dual", "loss")
    ]
    pd.DataFrame(rows).to_csv(folder / "clients.csv", index=False)
    project.curve(cell.runs[0].key, 0.9, ("test_minority_accuracy",), np.random.default_rng(0))
    project.finish(cell, [0.9], "test_minority_accuracy")
    trained = drawing_of(Plan(config, "climb"), "figure2")
    drawing = drawing_of(shipped(project, config, "climb", "figure2"), "figure2")
    pd.testing.assert_frame_equal(drawing.points, trained.points, rtol=1e-5)
    assert len(drawing.points) and "comes with the repository" in drawing.words


def test_a_file_that_was_changed_by_hand_is_refused(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "figure1", reduced)
    plan = shipped(project, reduced)
    lines = CURVES.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",high"
    CURVES.write_text("\n".join(lines))
    with pytest.raises(UserError, match=r"curves/localscgdam\.csv: .*test_auc"):
        drawing_of(plan, "figure1")
    CURVES.write_text("round,test_auc\n1,0.5\n")
    with pytest.raises(UserError, match=r"column key.*`fedbench export`"):
        drawing_of(plan, "figure1")
