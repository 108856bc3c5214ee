"""Final values against a setting, other x axes, panels over two axes, logarithms: against values computed by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from report_project import Project, localscgdam, run_result
from scipy.stats import t

from fedbench import sealed_json
from fedbench.errors import UserError
from fedbench.report.figures import build as figures
from fedbench.report.figures import style
from fedbench.report.figures.parts import Across, Content, Curve, Panel
from fedbench.report.figures.plot import draw
from fedbench.results.export import export_reproduced
from fedbench.results.statistics import COVERAGE
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

BASE: dict[str, Any] = {
    "title": "T",
    "panels": "dataset",
    "datasets": ["CIFAR10"],
    "methods": ["CoDA", "LocalSGDM"],
    "settings": {"p": [4, 8, 16]},
    "metrics": ["test_auc"],
}
FINAL = BASE | {"kind": "final", "x": "p", "log": "x"}


def figure(project: Project, spec: dict[str, Any], methods: dict[str, Any] | None = None) -> None:
    paper = localscgdam()
    paper["figures"] = {"figure1": spec}
    for name, entry in (methods or {}).items():
        paper["methods"][name] |= entry
    project.save_paper("localscgdam", paper)


def cells(project: Project, config: Config) -> dict[tuple[Any, ...], Any]:
    return {(c.method, *c.setting.values()): c for c in project.cells("localscgdam", "figure1", config)}


def make(config: Config) -> figures.Drawing:
    return figures.drawing_of(Plan(config), "figure1")


def with_curves(project: Project, cell: Any, columns: dict[str, Any], **made: Any) -> None:
    """Give each run of a cell one curve."""
    for run in cell.runs:
        project.write_curve(run.key, columns)
    project.finish(cell, [0.9] * len(cell.runs))
    for run in cell.runs:
        remade(project, run.key, made)


def remade(project: Project, key: str, made: dict[str, Any]) -> None:
    """Let the store say of a run how it was made."""
    path = project.root / "results" / "runs" / key / "run.json"
    sealed_json.write(path, sealed_json.read(path) | {"provenance": made})


def test_final_values_stand_against_a_setting_with_their_interval(project: Project, reduced: Config) -> None:
    figure(project, FINAL)
    chosen = cells(project, reduced)
    project.finish(chosen["CoDA", 4, 0.1], [0.8, 0.9, 1.0])
    project.finish(chosen["CoDA", 16, 0.1], [0.7, 0.7, 0.7])
    runs = [run_result(s.seed, s.key, {}, "diverged", "nan") for s in chosen["CoDA", 8, 0.1].runs]
    project.write(chosen["CoDA", 8, 0.1], runs)
    drawing = make(reduced)
    points = drawing.points.set_index("x")
    half = t.ppf(0.5 + COVERAGE / 2, 2) * 0.1 / np.sqrt(3)
    assert list(points.index) == [4, 16], "what diverged has no point"
    assert points.loc[4, ["mean", "low", "high"]].tolist() == pytest.approx([0.9, 0.9 - half, 0.9 + half])
    assert points.loc[16, ["mean", "low", "high"]].tolist() == pytest.approx([0.7, 0.7, 0.7])
    axes = drawing.picture.axes[0]
    assert axes.get_xscale() == "log" and [text.get_text() for text in axes.get_xticklabels()] == [
        "4",
        "8",
        "16",
    ]
    assert axes.get_xlabel() == "p" and "CoDA: diverged at 8" in [text.get_text() for text in axes.texts]
    dots = axes.collections[0].get_offsets()
    assert sorted(dots[:, 1]) == pytest.approx([0.7, 0.7, 0.7, 0.8, 0.9, 1.0]), "each seed"


def test_final_values_are_shown_from_what_is_shipped(project: Project, reduced: Config) -> None:
    """Two of three cells are exported with four seeds and removed; the third is trained here."""
    figure(project, FINAL)
    paper = localscgdam()
    paper["figures"] = {"figure1": FINAL}
    paper["tables"]["table1"] |= {"methods": ["CoDA", "LocalSGDM"], "settings": {"p": [4, 8]}}
    paper["claims"] = []
    project.save_paper("localscgdam", paper)
    four = reduced.model_copy(update={"seeds": [0, 1, 2, 3]})
    for cell in cells(project, four).values():
        if cell.method == "CoDA" and cell.setting["p"] != 16:
            project.finish(cell, [0.8, 0.8, 0.9, 0.9])
    export_reproduced(Plan(four), "table1")
    shutil.rmtree(project.root / "results")
    project.finish(cells(project, reduced)["CoDA", 16, 0.1], [0.7, 0.7, 0.7])
    drawing = make(reduced)
    assert drawing.points.set_index("x")["mean"].to_dict() == pytest.approx({4: 0.85, 8: 0.85, 16: 0.7})
    assert "mean over 4 seeds" in drawing.words and "comes with the repository" in drawing.words
    dots = drawing.picture.axes[0].collections[0].get_offsets()
    assert sorted(dots[:, 1]) == pytest.approx([0.7] * 3 + [0.8] * 4 + [0.9] * 4)
    without = make(reduced.model_copy(update={"shipped": False}))
    assert without.points["x"].tolist() == [16] and "shipped" not in without.words


def test_an_interval_does_not_press_the_means_together(project: Project, reduced: Config) -> None:
    figure(project, FINAL)
    chosen = cells(project, reduced)
    two = Config(scale="reduced", seeds=[0, 1])
    for p, values in ((4, [0.80, 0.82]), (8, [0.84, 0.80]), (16, [0.9, 0.88])):
        chosen = cells(project, two)
        project.finish(chosen["CoDA", p, 0.1], values)
    low, high = make(two).picture.axes[0].get_ylim()
    assert 0.78 < low < 0.8 and 0.9 < high < 0.92, "with two seeds the intervals reach from 0.7 to 0.95"


def test_a_method_without_some_cells_has_points_where_it_has_cells(project: Project, reduced: Config) -> None:
    figure(project, FINAL, {"CoDA": {"only": {"p": [4, 16]}}})
    for cell in cells(project, reduced).values():
        project.finish(cell, [0.9, 0.9, 0.9])
    points = make(reduced).points
    assert points.loc[points["curve"] == "CoDA", "x"].tolist() == [4, 16]
    assert points.loc[points["curve"] == "LocalSGDM", "x"].tolist() == [4, 8, 16]


def test_two_axes_of_panels_are_rows_and_columns(project: Project, reduced: Config) -> None:
    spec = BASE | {"panels": ["imratio", "method"], "settings": {"p": [4, 8], "imratio": [0.1, 0.2, 0.3]}}
    figure(project, spec)
    project.fill("localscgdam", "figure1", reduced)
    for cell in project.cells("localscgdam", "figure1", reduced):
        if cell.setting["imratio"] == 0.2 or (cell.setting["imratio"] == 0.3 and cell.method == "CoDA"):
            (project.root / cell.path).unlink()
    drawing = make(reduced)
    titles = [axes.get_title().replace("\n", ", ") for axes in drawing.picture.axes]
    places = [f"imbalance ratio = {r}, {m}" for r in (0.1, 0.3) for m in ("CoDA", "LocalSGDM")]
    assert titles == places
    drawing.picture.draw_without_rendering()
    boxes = [axes.get_position() for axes in drawing.picture.axes]
    assert (
        boxes[0].y0 == boxes[1].y0 > boxes[2].y0 == boxes[3].y0 and boxes[0].x0 == boxes[2].x0 < boxes[1].x0
    )
    assert "no result yet" in [text.get_text() for text in drawing.picture.axes[2].texts]
    assert set(drawing.points["curve"]) == {"p = 4", "p = 8"}


def test_curves_over_cycles_samples_and_seconds(project: Project, reduced: Config) -> None:
    curve = {"iteration": [0, 4, 8], "round": [0, 1, 4], "samples": [0, 64, 128], "test_auc": [0.5, 0.8, 0.9]}
    cyclic = {"train": {"participation": {"rule": "cyclic", "clients": 1, "groups": 2}}}
    x = {"cycle": [0, 0.5, 2], "samples": [0, 64, 128], "seconds": [0, 1.5, 3.5]}
    for name, expected in x.items():
        figure(project, BASE | {"settings": {"p": [4]}, "methods": ["CoDA"], "x": name}, {"CoDA": cyclic})
        (cell,) = cells(project, reduced).values()
        if name == "cycle":
            with_curves(project, cell, curve, curve_seconds=[0, 1.5, 3.5])
        assert make(reduced).points["x"].tolist() == expected


def test_seconds_differ_between_seeds_and_are_averaged(project: Project, reduced: Config) -> None:
    figure(project, BASE | {"settings": {"p": [4]}, "methods": ["CoDA"], "x": "seconds"})
    (cell,) = cells(project, reduced).values()
    with_curves(project, cell, {"round": [0, 2], "test_auc": [0.5, 0.9]})
    for run, seconds in zip(cell.runs, (1, 2, 6), strict=True):
        remade(project, run.key, {"curve_seconds": [0, seconds]})
    points = make(reduced).points
    assert points["x"].tolist() == [0, 3] and points["mean"].tolist() == pytest.approx([0.5, 0.9])


@pytest.mark.parametrize(
    ("change", "missing"), [({"x": "cycle"}, "cycle"), ({"metrics": ["test_ap"]}, "test_ap")]
)
def test_what_no_curve_has_is_named(
    project: Project, reduced: Config, change: dict[str, Any], missing: str
) -> None:
    figure(project, BASE | change)
    project.fill("localscgdam", "figure1", reduced)
    words = make(reduced).words
    assert f"the curves on file have no {missing}, only iteration, round, test_auc" in words


def test_a_logarithmic_axis_leaves_out_what_it_has_no_place_for(project: Project, reduced: Config) -> None:
    figure(project, BASE | {"settings": {"p": [4]}, "methods": ["CoDA"], "x": "round", "log": "xy"})
    (cell,) = cells(project, reduced).values()
    with_curves(project, cell, {"round": [0, 1, 10], "test_auc": [0.1, 0.0, 0.5]})
    drawing = make(reduced)
    line, _published = drawing.picture.axes[0].lines
    assert line.get_xydata().tolist() == [[10, 0.5]]
    assert len(drawing.points) == 3, "the CSV keeps them"


def test_a_run_that_diverged_before_its_second_evaluation_has_no_line_on_a_logarithmic_axis(
    project: Project, reduced: Config
) -> None:
    """All that it has is round 0, of which there is no logarithm."""
    figure(project, BASE | {"settings": {"p": [4]}, "x": "round", "log": "x"})
    known = cells(project, reduced)
    with_curves(project, known["LocalSGDM", 4, 0.1], {"round": [0, 1, 2], "test_auc": [0.5, 0.6, 0.7]})
    broken = known["CoDA", 4, 0.1]
    for run in broken.runs:
        project.write_curve(run.key, {"round": [0], "test_auc": [0.5]})
    project.write(broken, [run_result(run.seed, run.key, {}, "diverged", "nan") for run in broken.runs])
    drawing = make(reduced)
    lines = [line.get_xdata().tolist() for line in drawing.picture.axes[0].lines if len(line.get_xdata())]
    assert lines and all(x[0] >= 1 for x in lines)
    assert {*drawing.points["curve"]} == {"CoDA", "LocalSGDM"}, "the CSV keeps both"
    figures.save_figure(Plan(reduced), "figure1")


@pytest.mark.parametrize(
    "label", ["CoDA {}", "LocalSGDAM, federated {}", "a method {0} of a very long name" * 2]
)
def test_a_legend_of_long_names_stays_within_the_page(label: str) -> None:
    curve = pd.DataFrame({"x": [0, 1], "mean": [0.5, 0.6], "low": [0.5, 0.6], "high": [0.5, 0.6]})
    names = [label.format(number) for number in range(6)]
    looks = {name: style.Style("#000000", "-", "", 1.0) for name in names}
    curves = [Curve(name, curve) for name in names]
    page = draw(Content([Panel("", "auc", "", curves)], Across(""), looks, [], str, 1))
    page.canvas.draw()
    (legend,) = page.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= page.bbox.x1


def test_a_metric_that_falls_begins_above_what_is_shown() -> None:
    falling = [9.0, 0.4, 0.3]
    curve = Curve("a", pd.DataFrame({"x": [0, 1, 2], "mean": falling, "low": falling, "high": falling}))
    looks = {"a": style.Style("#000000", "-", "", 1.0)}
    (axes,) = draw(Content([Panel("", "loss", "", [curve], falls=True)], Across(""), looks, [], str, 1)).axes
    low, high = axes.get_ylim()
    assert low < 0.3 and 0.4 < high < 1
    (axes,) = draw(Content([Panel("", "loss", "", [curve])], Across(""), looks, [], str, 1)).axes
    assert axes.get_ylim()[1] > 9


def test_seeds_are_dots_and_intervals_bars_in_the_colours_of_their_methods() -> None:
    looks = {"a": style.Style("#ff0000", "-", "", 1.0), "b": style.Style("#0000ff", "-", "", 1.0)}
    spread = pd.DataFrame({"x": [1, 2], "mean": [0.5, 0.6], "low": [0.4, 0.6], "high": [0.7, 0.6]})
    curves = [
        Curve(name, spread + at, repeats=pd.DataFrame({"x": [1, 1], "value": [0.1, 0.2]}) + at)
        for at, name in enumerate(looks)
    ]
    (axes,) = draw(Content([Panel("", "auc", "", curves)], Across(""), looks, [], str, 1)).axes
    *dots, a, b = axes.collections
    assert [part.get_offsets().tolist() for part in dots] == [[[1, 0.1], [1, 0.2]], [[2, 1.1], [2, 1.2]]]
    assert [bars.get_segments()[0].tolist() for bars in (a, b)] == [
        [[1, 0.4], [1, 0.7]],
        [[2, 1.4], [2, 1.7]],
    ]
    colours = [*(part.get_facecolors()[0] for part in dots), a.get_colors()[0], b.get_colors()[0]]
    assert [to_hex(colour) for colour in colours] == ["#ff0000", "#0000ff"] * 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (BASE | {"x": "epoch"}, "unknown x of a figure of kind curves 'epoch'"),
        (FINAL | {"x": "iteration"}, "unknown x of a figure of kind final 'iteration'"),
        (FINAL | {"panels": ["dataset", "p"]}, "p is x and panels; name it once"),
        (FINAL | {"settings": {"p": [4, "none"]}}, "p takes none here, which is no number to draw against"),
        (BASE | {"panels": ["dataset", "p", "method"]}, "panels"),
        (BASE | {"log": "z"}, "figures.figure1.log"),
    ],
)
def test_slips_are_named_when_the_paper_is_read(
    project: Project, reduced: Config, spec: dict[str, Any], message: str
) -> None:
    figure(project, spec)
    with pytest.raises(UserError, match=message):
        make(reduced)


def test_every_kind_is_rendered(project: Project, reduced: Config, tmp_path: Path) -> None:
    figure(project, FINAL | {"metrics": ["test_auc"], "panels": ["imratio", "dataset"]})
    project.fill("localscgdam", "figure1", reduced)
    paths = figures.save_figure(Plan(reduced), "figure1")
    assert [path.suffix for path in paths] == [".pdf", ".svg", ".png", ".csv", ".json"]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in figures.save_figure(Plan(reduced), "figure1")] == first
