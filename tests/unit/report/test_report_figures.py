"""Figures: what is drawn of each kind, what is said when it is not, and that nothing lies over something else."""

from __future__ import annotations

import io
import itertools
import re
import shutil
import xml.etree.ElementTree as ElementTree
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from report_project import FIGURE, METHODS, REDUCED, Project, localscgdam, run_result

from fedbench import sealed_json
from fedbench.data.summary import Counts
from fedbench.report.figures import build as figures
from fedbench.report.figures import forest, style
from fedbench.report.figures.content import Content, Panel, curve, joined_curves
from fedbench.report.figures.plot import draw
from fedbench.report.figures.render import render, small_svg
from fedbench.results.auc_interval import auc_interval
from fedbench.results.export import export_reproduced
from fedbench.results.published import load_published
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper, paper_keys
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

MAGIC = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}


def words(drawing: figures.Drawing) -> str:
    """Every text that the figure's SVG draws, lines joined: its comments hold them."""
    svg = render(drawing.picture, "svg").decode()
    return " ".join(text.strip() for text in re.findall(r"<!--(.*?)-->", svg, re.DOTALL))


def csv_of(drawing: figures.Drawing) -> pd.DataFrame:
    """The points drawn, as the CSV beside the figure has them."""
    return pd.read_csv(io.StringIO(drawing.csv()))


def test_all_forms_are_written_and_the_same_each_time(project: Project) -> None:
    project.fill("localscgdam", "figure1")
    paths = figures.save_figure(Plan(REDUCED), "figure1")
    kinds = ("pdf", "svg", "png", "csv", "json")
    assert [path.name for path in paths] == [f"figure1.{kind}" for kind in kinds]
    first = [path.read_bytes() for path in paths]
    for path, content in zip(paths, first, strict=True):
        assert content.startswith(MAGIC.get(path.suffix[1:], b""))
    figures.save_figure(Plan(REDUCED), "figure1")
    assert [path.read_bytes() for path in paths] == first
    assert b"CreationDate" not in first[0] and b"<dc:date>" not in first[1]


def test_points_drawn_are_mean_and_range_over_seeds_beside_thin_lines_of_print(project: Project) -> None:
    project.fill("localscgdam", "figure1")
    (cell, *_) = project.cells("localscgdam", "figure1")
    curves = [pd.read_csv(project.root / "results" / "runs" / r.key / "curve.csv") for r in cell.runs]
    last = [curve["test_auc"].iloc[-1] for curve in curves]
    drawing = figures.drawing_of(Plan(REDUCED), "figure1")
    drawn = csv_of(drawing)
    assert list(drawn["panel"].unique()) == ["CIFAR10", "FashionMNIST"]
    end = drawn[(drawn["panel"] == cell.dataset) & (drawn["curve"] == cell.method)].iloc[-1]
    expected = [1000, np.mean(last), min(last), max(last)]
    assert end[["x", "mean", "low", "high"]].tolist() == pytest.approx(expected, rel=1e-5)
    rows = {"dataset": ["CIFAR10", "FashionMNIST"], "p": [4], "method": METHODS}
    print_of = load_published("localscgdam", "localscgdam_table1.csv").at(rows, ["test_auc"])
    looks = style.styles_of_methods(load_paper("localscgdam"))
    for axes, dataset in zip(drawing.picture.axes, ("CIFAR10", "FashionMNIST"), strict=True):
        thin = {of.get_color(): of.get_ydata()[0] for of in axes.lines if of.get_linewidth() < 1}
        for method in METHODS:
            place = (("dataset", dataset), ("p", 4), ("method", method))
            assert thin.pop(looks[method].colour) == print_of[place, "test_auc"].printed
        assert not thin
    (legend,) = drawing.picture.legends
    assert [text.get_text() for text in legend.get_texts()].count("published") == 1


def test_it_says_what_was_not_run_and_what_stands_in(project: Project) -> None:
    nothing = figures.drawing_of(Plan(REDUCED), "figure4")
    assert "no curve to draw" in words(nothing) and "not run at this scale: CATvsDOG" in words(nothing)
    assert csv_of(nothing).empty
    project.fill("localscgdam", "figure1")
    text = words(figures.drawing_of(Plan(REDUCED), "figure1"))
    assert "not run at this scale:" in text and "Melanoma" in text
    assert "mean over 3 seeds, band from lowest to highest" in text
    demo = Config(scale="demo")
    project.fill("localscgdam", "figure4", demo)
    drawing = figures.drawing_of(Plan(demo), "figure4")
    text = words(drawing)
    assert "Digits stands in for CATvsDOG" in text and "one seed" in text
    assert "not run at this scale" not in text and "imbalance ratio = 0.2" in text
    assert drawing.points["published"].isna().all() and len(drawing.points), "print is of other data"


def test_a_figure_has_one_title_and_no_published_line_of_another_setting(project: Project) -> None:
    project.change(figures={"figure1": {"settings": {"p": [4], "imratio": [0.05]}, "panels": ["dataset"]}})
    project.fill("localscgdam", "figure1")
    drawing = figures.drawing_of(Plan(REDUCED), "figure1")
    assert drawing.points["published"].isna().all() and len(drawing.points)
    demo = Config(scale="demo")
    project.fill("localscgdam", "figure1", demo)
    drawing = figures.drawing_of(Plan(demo), "figure1")
    assert drawing.title == "Test AUC, p = 4: Digits (stand-in)"
    assert [axes.get_title() for axes in drawing.picture.axes] == [""]
    assert drawing.picture.texts and not drawing.plain.texts, "a page has the title beside it"


def test_a_diverged_seed_ends_the_curve_with_a_remark(project: Project) -> None:
    project.fill("localscgdam", "figure1")
    cell = next(c for c in project.cells("localscgdam", "figure1") if c.method == "CoDA")
    short = project.root / "results" / "runs" / cell.runs[1].key / "curve.csv"
    pd.read_csv(short).iloc[:9].to_csv(short, index=False)
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9}) for s in cell.runs]
    runs[1] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(cell, runs)
    drawing = figures.drawing_of(Plan(REDUCED), "figure1")
    drawn = csv_of(drawing)
    assert drawn[(drawn["panel"] == "CIFAR10") & (drawn["curve"] == "CoDA")]["x"].max() == 400
    assert "CoDA: diverged in 1 of 3 seeds" in words(drawing)


def test_panels_may_be_metrics(project: Project) -> None:
    project.fill("climb", "figure1")
    drawing = figures.drawing_of(Plan(REDUCED, "climb"), "figure1")
    drawn = csv_of(drawing)
    assert set(drawn["panel"]) == {"Minority accuracy", "Overall accuracy"}
    assert [axes.get_ylabel() for axes in drawing.picture.axes] == ["minority accuracy", "overall accuracy"]
    assert set(drawn["metric"]) == {"test_minority_accuracy", "test_overall_accuracy"}
    assert drawn["x"].max() == 250, "rounds, not iterations"


def test_clients_are_drawn_one_by_one_and_the_highest_tenth_apart(project: Project) -> None:
    (cell,) = project.cells("climb", "figure2")
    rows = [
        {
            "round": r,
            "quantity": q,
            **{f"client{k}": (r * (k == 7) if q == "dual" else 1.0 + k) for k in range(20)},
        }
        for r in (0, 5, 10)
        for q in ("dual", "loss")
    ]
    folder = project.root / "results" / "runs" / cell.runs[0].key
    folder.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(folder / "clients.csv", index=False)
    project.finish(cell, [0.9, 0.9, 0.9], metric="test_minority_accuracy")
    drawing = figures.drawing_of(Plan(REDUCED, "climb"), "figure2")
    drawn = csv_of(drawing).set_index(["panel", "curve", "x"])
    top = "the tenth that ends highest"  # two of twenty: client 7 and, all others equal, client 0
    assert drawn.loc[("Dual variable", top, 10), "high"] == 10
    assert tuple(drawn.loc[("Training loss", top, 10), ["low", "high"]]) == (1.0, 8.0)
    assert drawn.loc[("Dual variable", "mean of all clients", 10), "mean"] == pytest.approx(10 / 20)
    assert "one line per client, first seed" in words(drawing)


@pytest.mark.parametrize("study", paper_keys())
def test_methods_of_a_study_differ_without_colour_too_and_what_it_proposes_is_thick(study: str) -> None:
    paper = load_paper(study)
    looks = style.styles_of_methods(paper)
    for other in ("dash", "colour"):
        assert len({(getattr(look, other), look.marker) for look in looks.values()}) == len(paper.methods)
    assert len({look.colour for look in looks.values()}) == min(len(paper.methods), len(style.COLOURS))
    assert {name for name, look in looks.items() if look.width == style.THICK} == {*paper.proposes}


ONE = FIGURE | {"settings": {"p": [4]}, "methods": ["CoDA"]}


def figure(project: Project, spec: dict[str, Any], **coda: Any) -> None:
    """Write a paper with this figure, a table of the same cells, and what CoDA trains with."""
    paper = localscgdam() | {"figures": {"figure1": spec}, "claims": []}
    paper["tables"]["table1"] |= {"methods": spec["methods"], "settings": {"p": [4, 8]}}
    paper["methods"]["CoDA"] |= coda
    project.save_paper("localscgdam", paper)


def make(config: Config) -> figures.Drawing:
    return figures.drawing_of(Plan(config), "figure1")


def remade(project: Project, key: str, made: dict[str, Any]) -> None:
    """Let the store say of a run how it was made."""
    path = project.root / "results" / "runs" / key / "run.json"
    sealed_json.write(path, sealed_json.read(path) | {"provenance": made})


def test_final_values_are_shown_from_what_is_shipped_and_trained_here(project: Project) -> None:
    """Two of three cells are exported with four seeds and removed; the third is trained shown_here."""
    figure(project, FIGURE | {"kind": "final", "x": "p", "log": "x"})
    four = REDUCED.model_copy(update={"seeds": [0, 1, 2, 3]})

    def of_coda(cell: Cell) -> list[float]:
        shown_here = cell.method == "CoDA" and (cell.setting["p"] == 16) == (len(cell.runs) == 3)
        return ([0.7] * 3 if len(cell.runs) == 3 else [0.8, 0.8, 0.9, 0.9]) if shown_here else []

    project.finish_each(of_coda, four, "figure1")
    export_reproduced(Plan(four), "table1")
    shutil.rmtree(project.root / "results")
    project.finish_each(of_coda, target="figure1")
    drawing = make(REDUCED)
    assert drawing.points.set_index("x")["mean"].to_dict() == pytest.approx({4: 0.85, 8: 0.85, 16: 0.7})
    assert "mean over 3 to 4 seeds" in drawing.words
    assert "is a reference result" in drawing.words
    (axes,) = drawing.picture.axes
    assert sorted(axes.collections[0].get_offsets()[:, 1]) == pytest.approx([0.7] * 3 + [0.8] * 4 + [0.9] * 4)
    assert axes.get_xlabel() == "p" and axes.get_xticks().tolist() == [4, 8, 16]
    without = make(REDUCED.model_copy(update={"shipped": False}))
    assert without.points["x"].tolist() == [16] and "comes with" not in without.words


def axes_of(
    curves: dict[str, pd.DataFrame], looks: dict[str, style.Style] | None = None, **content: Any
) -> Axes:
    """The axes of one panel with these curves."""
    points = pd.concat(curve(label, of) for label, of in curves.items())
    drawn = Content([Panel("", "test_auc", "", points)], **content)
    (axes,) = draw(drawn, looks or style.styles_in_order([*curves])).axes
    return axes


def test_a_failed_seed_is_an_arrow_with_its_value_and_does_not_flatten_the_others() -> None:
    def limits(failed: float, log: str = "") -> tuple[Axes, float, float]:
        values = {"a": [0.90, 0.91, 0.92], "b": [0.95, 0.96, failed]}
        means = {
            name: pd.DataFrame({"x": [1.0], "mean": [np.mean(of)], "low": 0.9, "high": 0.9, "values": [of]})
            for name, of in values.items()
        }
        axes = axes_of(means, look="seeds", log=log)
        return axes, *axes.get_ylim()

    axes, low, high = limits(0.337)
    assert 0.85 < low < 0.9 and 0.96 < high < 1
    (words,) = [text for text in axes.texts if text.get_text()]
    assert words.get_text() == "b: seed 0.337; mean 0.749"
    assert words.xy == (1.0, 0), "at the lower end"  # type: ignore[attr-defined]
    assert words.get_ha() == "center", (
        "in the middle of the panel, whose edge words beside the arrow would cross"
    )
    axes, low, high = limits(0.92)
    assert low < 0.9 and high > 0.96 and not any(text.get_text() for text in axes.texts)
    assert limits(0.337, log="y")[1] < 0.337, "a logarithmic axis has place for it"


def test_two_axes_of_panels_are_rows_and_columns(project: Project) -> None:
    """Without the row of the imbalance 0.2, of which nothing ran."""
    figure(
        project,
        FIGURE | {"panels": ["imratio", "method"], "settings": {"p": [4, 8], "imratio": [0.1, 0.2, 0.3]}},
    )
    project.fill("localscgdam", "figure1")
    for cell in project.cells("localscgdam", "figure1"):
        if cell.setting["imratio"] == 0.2 or (cell.setting["imratio"] == 0.3 and cell.method == "CoDA"):
            (project.root / cell.path).unlink()
    drawing = make(REDUCED)
    titles = [axes.get_title().replace("\n", ", ") for axes in drawing.picture.axes]
    assert titles == [f"imbalance ratio = {r}, {m}" for r in (0.1, 0.3) for m in ("CoDA", "LocalSGDM")]
    drawing.picture.draw_without_rendering()
    a, b, c, d = (axes.get_position() for axes in drawing.picture.axes)
    assert a.y0 == b.y0 > c.y0 == d.y0 and a.x0 == c.x0 < b.x0
    assert "no result yet" in [text.get_text() for text in drawing.picture.axes[2].texts]
    assert set(drawing.points["curve"]) == {"p = 4", "p = 8"}


def test_curves_over_cycles_samples_and_seconds_which_are_averaged(project: Project) -> None:
    curve = {"iteration": [0, 4, 8], "round": [0, 1, 4], "samples": [0, 64, 128], "test_auc": [0.5, 0.8, 0.9]}
    cyclic = {"participation": {"rule": "cyclic", "clients": 1, "groups": 2}}
    x = {"cycle": [0, 0.5, 2], "samples": [0, 64, 128], "seconds": [0, 3, 5]}
    for name, expected in x.items():
        figure(project, ONE | {"x": name}, train=cyclic)
        (cell,) = project.cells("localscgdam", "figure1")
        for run in cell.runs:
            project.write_curve(run.key, curve)
        project.finish(cell, [0.9] * 3)
        for run, seconds in zip(cell.runs, (1, 2, 6), strict=True):
            remade(project, run.key, {"curve_seconds": [0, seconds, seconds + 2]})
        points = make(REDUCED).points
        assert points["x"].tolist() == expected and points["mean"].tolist() == pytest.approx([0.5, 0.8, 0.9])


def test_a_logarithmic_axis_leaves_out_what_it_has_no_place_for() -> None:
    points = pd.DataFrame({"x": [0, 1, 10], "mean": [0.1, 0.0, 0.5]})
    axes = axes_of({"a": points.assign(low=points["mean"], high=points["mean"])}, log="xy")
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[10, 0.5]]]
    begun = pd.DataFrame({"x": [0], "mean": [0.5], "low": [0.5], "high": [0.5]})
    axes = axes_of({"a": begun.assign(remark="diverged in 1 of 1 seeds", broken=True)}, log="x")
    assert all(line.get_xdata().size == 0 for line in axes.lines)  # type: ignore[union-attr]
    assert [text.get_text() for text in axes.texts] == ["a: diverged in 1 of 1 seeds"]


def test_the_axis_shows_what_training_reaches_and_not_where_it_begins() -> None:
    values = {"a": [0.5, 0.94, 0.98], "b": [9.0, 0.92, 0.96]}
    curves = {
        name: pd.DataFrame({"x": range(3), "mean": of, "low": of, "high": of, "published": 0.99})
        for name, of in values.items()
    }
    assert axes_of(curves).get_ylim() == pytest.approx((0.92 - 0.0035, 0.99 + 0.0035))
    low, high = axes_of({"a": curves["a"][:1]}).get_ylim()
    assert low < 0.5 < high, "nothing was trained yet"


def test_ticks_stand_at_the_values_of_a_setting_and_an_interval_does_not_press_means_together() -> None:
    points = pd.DataFrame({"x": [1.0, 8, 512], "mean": [0.81, 0.82, 0.89], "low": 0.7, "high": 0.95})
    points["values"] = [[0.8], [], [0.9]]
    axes = axes_of({"a": points}, look="seeds", log="x", ticks=(1.0, 8.0, 512.0))
    assert axes.get_xscale() == "log" and axes.get_xticks().tolist() == [1, 8, 512]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "8", "512"]
    assert not axes.get_xticks(minor=True).size
    low, high = axes.get_ylim()
    assert 0.78 < low < 0.8 and 0.9 < high < 0.92


def test_seeds_are_dots_and_intervals_bars_in_the_colours_of_their_methods() -> None:
    looks = {"a": style.Style("#ff0000", "-", "", 1.0), "b": style.Style("#0000ff", "-", "", 1.0)}
    spread = pd.DataFrame({"x": [1, 2], "mean": [0.5, 0.6], "low": [0.4, 0.6], "high": [0.7, 0.6]})
    values = {"a": [[0.1, 0.2], [0.3]], "b": [[1.1, 1.2], [1.3]]}
    curves = {name: (spread + at).assign(values=values[name]) for at, name in enumerate(looks)}
    *dots, a, b = axes_of(curves, looks, look="seeds").collections
    assert [part.get_offsets().tolist() for part in dots] == [
        [[1, 0.1], [1, 0.2], [2, 0.3]],
        [[2, 1.1], [2, 1.2], [3, 1.3]],
    ]
    assert [bars.get_segments()[0].tolist() for bars in (a, b)] == [
        [[1, 0.4], [1, 0.7]],
        [[2, 1.4], [2, 1.7]],
    ]
    colours = [*(part.get_facecolors()[0] for part in dots), a.get_colors()[0], b.get_colors()[0]]
    assert [to_hex(colour) for colour in colours] == ["#ff0000", "#0000ff"] * 2


def test_a_remark_on_all_curves_is_written_once() -> None:
    points = pd.DataFrame({"x": [0, 1], "mean": 0.5, "low": 0.5, "high": 0.5, "remark": "1 of 3 seeds"})
    axes = axes_of({"a": points, "b": points})
    assert [text.get_text() for text in axes.texts] == ["each curve: 1 of 3 seeds"]
    axes = axes_of({"a": points, "b": points, "c": points.assign(remark="")})
    assert [text.get_text() for text in axes.texts] == ["a: 1 of 3 seeds\nb: 1 of 3 seeds"]


def test_the_legend_has_a_line_only_for_what_is_drawn_as_one_and_large_numbers_have_no_power() -> None:
    points = {
        name: pd.DataFrame({"x": x, "mean": 0.5, "low": 0.5, "high": 0.5, "values": [[0.5]] * len(x)})
        for name, x in {"points": [3e7], "line": [1e7, 2e7], style.FRONT: [3e7]}.items()
    }
    axes = axes_of(points, {**style.styles_in_order(["points", "line"]), **style.NO_METHODS}, look="seeds")
    (legend,) = axes.figure.legends
    lines = {text.get_text(): line for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert {name: line.get_linestyle() for name, line in lines.items()} == {"points": "None", "line": "--"}
    axes.figure.draw_without_rendering()
    assert (
        "20 M" in [text.get_text() for text in axes.get_xticklabels()]
        and not axes.xaxis.offsetText.get_text()
    )


def test_what_a_pareto_figure_shows_of_another_scale_is_not_called_not_run() -> None:
    drawing = figures.drawing_of(Plan(Config(scale="demo"), "arena"), "figure1")
    assert {panel.title for panel in drawing.content.panels} >= {"FashionMNIST (reduced)"}
    assert "no value yet: Digits" in drawing.words
    assert "FashionMNIST" not in drawing.words and "not run at this scale: " in drawing.words


@pytest.mark.parametrize(("count", "methods"), [(0, 0), (1, 2), (4, 27)])
def test_title_panels_words_and_legend_lie_apart(count: int, methods: int) -> None:
    names = [f"A-method-{number}" for number in range(methods)]
    values = pd.DataFrame(
        {"x": [0, 3e7], "mean": [0.974, 0.976], "low": [0.974, 0.976], "high": [0.974, 0.976]}
    )
    points = joined_curves(curve(name, values) for name in names)
    panels = [Panel("K = 5, share of positives = 0.1", "test_auc", "test AUC", points)] * count
    content = Content(panels, x_label="numbers sent")
    looks = style.styles_in_order(names)
    figure = draw(content, looks, "A title of a figure " * 5, "Words that say what was run; " * 12)
    figure.draw_without_rendering()
    (title,) = figure.texts
    boxes = [part.get_tightbbox() for part in (title, *figure.axes, *figure.legends)]
    assert len(boxes) == count + 2
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(
        axes.bbox.height > 0.9 * figure.dpi and axes.bbox.width > 0.9 * figure.dpi for axes in figure.axes
    )


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
def hospitals(project: Project, monkeypatch: pytest.MonkeyPatch) -> dict[str, Cell]:
    """The hospitals of the figure by their methods, without results; the test samples are counted."""
    paper = localscgdam()
    paper["figures"] = {"figure1": FOREST}
    project.save_paper("localscgdam", paper)
    monkeypatch.setattr(forest, "tested", lambda plan, place: COUNTS)
    return {cell.method: cell for cell in project.cells("localscgdam", "figure1")}


def finish_hospitals(project: Project, cell: Cell, values: dict[str, list[float]]) -> None:
    """Give each seed its AUC in each hospital, and 0.75 over all."""
    of_seeds = [{f"test_auc@{site}": of[i] for site, of in values.items()} for i in range(len(cell.runs))]
    runs = zip(cell.runs, of_seeds, strict=True)
    project.write(cell, [run_result(run.seed, run.key, {"test_auc": 0.75, **of}) for run, of in runs])


def test_points_are_the_means_of_each_hospital_with_the_interval_of_its_patients(
    project: Project, hospitals: dict[str, Cell]
) -> None:
    assert make(REDUCED).points.empty, "nothing has run"
    finish_hospitals(project, hospitals["CoDA"], CODA)
    drawn = make(REDUCED).points
    assert drawn[["metric", "curve", "x"]].to_numpy().tolist() == [
        [name, "CoDA", row] for row, name in enumerate(SITES)
    ]
    assert drawn["mean"].tolist() == pytest.approx([0.75, 0.8, 0.5])
    expected = [auc_interval(mean, n.positive or 0, n.negative or 0)
                for mean, n in zip([0.75, 0.8, 0.5], COUNTS.values(), strict=True)]  # fmt: skip
    assert drawn[["low", "high"]].to_numpy().tolist() == [pytest.approx(ends) for ends in expected]
    assert drawn[["positives", "negatives"]].to_numpy().tolist() == [[30, 40], [28, 32], [2, 8]]


def test_methods_of_a_row_stand_apart_and_each_seed_is_a_dot(
    project: Project, hospitals: dict[str, Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish_hospitals(project, hospitals["CoDA"], CODA)
    finish_hospitals(project, hospitals["LocalSGDM"], {"Basel": [0.6] * 3, "Lyon": [0.7] * 3})
    drawing = make(REDUCED)
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
    alone = make(REDUCED.model_copy(update={"seeds": [0]}))
    assert "over 1 seed, dots: each seed, bars: 90 %" in alone.words, "bars are explained for one seed too"
    finish_hospitals(project, hospitals["CoDA"], {"Basel": CODA["Basel"], "Lyon": [float("nan")] * 3})
    said = [(text.get_text(), round(text.get_position()[1])) for text in make(REDUCED).picture.axes[0].texts]
    assert [pair for pair in said if pair[0]] == [("undefined", SITES.index("test_auc@Lyon"))]
    monkeypatch.setattr(forest, "tested", lambda plan, place: {})
    without = make(REDUCED)
    assert "bars" not in without.words and "not prepared here" in without.words
    assert without.points["low"].isna().all() and without.points["mean"].notna().all()
    assert without.picture.axes[0].get_yticklabels()[1].get_text() == "Basel"


def test_methods_of_a_row_stand_in_the_order_of_the_legend() -> None:
    points = pd.DataFrame({"x": [0], "mean": 0.5, "low": 0.4, "high": 0.6, "values": [[0.5]]})
    points = points.assign(positives=1, negatives=1)
    axes = axes_of({"b": points, "a": points}, style.styles_in_order(["a", "b"]), look="rows", rows=("all",))
    heights = {line.get_marker(): line.get_ydata()[0] for line in axes.lines}  # type: ignore[index]
    assert heights["o"] < heights["s"], "rows are counted from the top"


SVG = "{http://www.w3.org/2000/svg}"


def shapes(root: ElementTree.Element, tag: str) -> list[tuple[float, ...]]:
    """The coordinates of elements of a kind."""
    attributes = ("d", "x", "y", "transform")
    told = [" ".join(e.get(name, "") for name in attributes) for e in root.iter(SVG + tag)]
    told = [re.sub(r"rotate\(-0 .*?\)", "", text) for text in told]
    return [tuple(float(number) for number in re.findall(r"-?\d+\.?\d*", text)) for text in told]


def styles(root: ElementTree.Element) -> list[str]:
    """The style of each element that has one, without its font."""
    css = "".join(e.text or "" for e in root.iter(f"{SVG}style"))
    rules = dict(re.findall(r"\.(s\d+)\{(.*?)\}", css))
    told = [e.get("style") or rules.get(e.get("class", ""), "") for e in root.iter()]
    return [re.sub(r"; font-family: 'DejaVu Sans'", "", style) for style in told if style]


def test_a_small_svg_has_the_shapes_texts_styles_and_references_of_the_figure() -> None:
    figure = Figure()
    axes = figure.subplots()
    for slope in range(1, 40):
        axes.plot([0, 1, 2], [0, slope, 4.5], marker="o", alpha=0.45, color="#d55e00", linestyle="--")
    axes.set_title("5 < α & more, at 0.9725")
    text, stream = small_svg(figure), io.StringIO()
    with matplotlib.rc_context({**style.RC, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg")
    small, usual = (ElementTree.fromstring(svg) for svg in (text, stream.getvalue()))
    for tag in ("path", "use", "text", "rect"):
        for ours, theirs in zip(shapes(small, tag), shapes(usual, tag), strict=True):
            assert ours == pytest.approx(theirs, abs=0.1), tag
    assert styles(small) == styles(usual) and len({*styles(small)}) > 5
    assert "5 < α & more, at 0.9725" in [e.text for e in small.iter(f"{SVG}text")]
    assert "font-family:DejaVu Sans,Verdana,sans-serif" in text
    assert len(text) < len(render(figure, "svg")) / 3
    ids, targets = ({e.get("id"): e.tag for e in root.iter() if e.get("id")} for root in (small, usual))
    pairs = [*zip(small.iter(f"{SVG}use"), usual.iter(f"{SVG}use"), strict=True)]
    assert len(pairs) > 100
    for our, their in pairs:
        known = targets[their.get("{http://www.w3.org/1999/xlink}href", "")[1:]]
        assert ids[our.get("href", "")[1:]] == known
    clips = set(re.findall(r"url\(#(\w+)\)", text))
    assert clips and clips <= ids.keys()
