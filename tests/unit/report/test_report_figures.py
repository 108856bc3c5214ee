"""Figures: what is drawn of each kind, what is said when it is not, and that nothing lies over something else."""

from __future__ import annotations

import io
import itertools
import re
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from report_project import METHODS, Project, localscgdam, run_result

from fedbench import sealed_json
from fedbench.report.figures import build as figures
from fedbench.report.figures import style
from fedbench.report.figures.parts import Across, Content, Curve, Panel
from fedbench.report.figures.plot import draw, render
from fedbench.results.export import export_reproduced
from fedbench.results.published import load_published
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper, paper_keys
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

Fill = Callable[[str, str], Project]
MAGIC = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}


def words(drawing: figures.Drawing) -> str:
    """Every text that the figure's SVG draws, lines joined: its comments hold them."""
    svg = render(drawing.picture, "svg").decode()
    return " ".join(text.strip() for text in re.findall(r"<!--(.*?)-->", svg, re.DOTALL))


def csv_of(drawing: figures.Drawing) -> pd.DataFrame:
    """The points drawn, as the CSV beside the figure has them."""
    return pd.read_csv(io.StringIO(drawing.csv()))


def test_all_forms_are_written_and_the_same_each_time(filled: Fill, reduced: Config) -> None:
    filled("localscgdam", "figure1")
    paths = figures.save_figure(Plan(reduced), "figure1")
    kinds = ("pdf", "svg", "png", "csv", "json")
    assert [path.name for path in paths] == [f"figure1.{kind}" for kind in kinds]
    first = [path.read_bytes() for path in paths]
    for path, content in zip(paths, first, strict=True):
        assert content.startswith(MAGIC.get(path.suffix[1:], b""))
    figures.save_figure(Plan(reduced), "figure1")
    assert [path.read_bytes() for path in paths] == first
    assert b"CreationDate" not in first[0] and b"<dc:date>" not in first[1]


def test_points_drawn_are_mean_and_range_over_seeds_beside_thin_lines_of_print(
    filled: Fill, reduced: Config
) -> None:
    project = filled("localscgdam", "figure1")
    (cell, *_) = project.cells("localscgdam", "figure1", reduced)
    curves = [pd.read_csv(project.root / "results" / "runs" / r.key / "curve.csv") for r in cell.runs]
    last = [curve["test_auc"].iloc[-1] for curve in curves]
    drawing = figures.drawing_of(Plan(reduced), "figure1")
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


def test_it_says_what_was_not_run_and_what_stands_in(project: Project, filled: Fill, reduced: Config) -> None:
    nothing = figures.drawing_of(Plan(reduced), "figure4")
    assert "no curve to draw" in words(nothing) and "not run at this scale: CATvsDOG" in words(nothing)
    assert csv_of(nothing).empty
    filled("localscgdam", "figure1")
    text = words(figures.drawing_of(Plan(reduced), "figure1"))
    assert "not run at this scale:" in text and "Melanoma" in text
    assert "mean over 3 seeds, band from lowest to highest" in text
    demo = Config(scale="demo")
    project.fill("localscgdam", "figure4", demo)
    drawing = figures.drawing_of(Plan(demo), "figure4")
    text = words(drawing)
    assert "Digits stands in for CATvsDOG" in text and "one seed" in text
    assert "not run at this scale" not in text and "imbalance ratio = 0.2" in text
    assert drawing.points["published"].isna().all() and len(drawing.points), "print is of other data"


def test_a_figure_has_one_title_and_no_published_line_of_another_setting(
    project: Project, reduced: Config
) -> None:
    project.change(figures={"figure1": {"settings": {"p": [4], "imratio": [0.05]}, "panels": ["dataset"]}})
    project.fill("localscgdam", "figure1", reduced)
    drawing = figures.drawing_of(Plan(reduced), "figure1")
    assert drawing.points["published"].isna().all() and len(drawing.points)
    demo = Config(scale="demo")
    project.fill("localscgdam", "figure1", demo)
    drawing = figures.drawing_of(Plan(demo), "figure1")
    assert drawing.title == "Test AUC, p = 4: Digits (stand-in)"
    assert [axes.get_title() for axes in drawing.picture.axes] == [""]
    assert drawing.picture.texts and not drawing.plain.texts, "a page has the title beside it"


def test_a_diverged_seed_ends_the_curve_with_a_remark(filled: Fill, reduced: Config) -> None:
    project = filled("localscgdam", "figure1")
    cell = next(c for c in project.cells("localscgdam", "figure1", reduced) if c.method == "CoDA")
    short = project.root / "results" / "runs" / cell.runs[1].key / "curve.csv"
    pd.read_csv(short).iloc[:9].to_csv(short, index=False)
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9}) for s in cell.runs]
    runs[1] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(cell, runs)
    drawing = figures.drawing_of(Plan(reduced), "figure1")
    drawn = csv_of(drawing)
    assert drawn[(drawn["panel"] == "CIFAR10") & (drawn["curve"] == "CoDA")]["x"].max() == 400
    assert "CoDA: diverged in 1 of 3 seeds" in words(drawing)


def test_panels_may_be_metrics(filled: Fill, reduced: Config) -> None:
    filled("climb", "figure1")
    drawn = csv_of(figures.drawing_of(Plan(reduced, "climb"), "figure1"))
    assert set(drawn["panel"]) == {"Minority accuracy", "Overall accuracy"}
    assert set(drawn["metric"]) == {"test_minority_accuracy", "test_overall_accuracy"}
    assert drawn["x"].max() == 250, "rounds, not iterations"


def test_clients_are_drawn_one_by_one_and_the_highest_tenth_apart(project: Project, reduced: Config) -> None:
    (cell,) = project.cells("climb", "figure2", reduced)
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
    drawing = figures.drawing_of(Plan(reduced, "climb"), "figure2")
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


BASE: dict[str, Any] = {
    "title": "T", "panels": "dataset", "datasets": ["CIFAR10"], "methods": ["CoDA", "LocalSGDM"],
    "settings": {"p": [4, 8, 16]}, "metrics": ["test_auc"],
}  # fmt: skip
ONE = BASE | {"settings": {"p": [4]}, "methods": ["CoDA"]}


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


def test_final_values_are_shown_from_what_is_shipped_and_trained_here(
    project: Project, reduced: Config
) -> None:
    """Two of three cells are exported with four seeds and removed; the third is trained shown_here."""
    figure(project, BASE | {"kind": "final", "x": "p", "log": "x"})
    four = reduced.model_copy(update={"seeds": [0, 1, 2, 3]})

    def of_coda(cell: Cell) -> list[float]:
        shown_here = cell.method == "CoDA" and (cell.setting["p"] == 16) == (len(cell.runs) == 3)
        return ([0.7] * 3 if len(cell.runs) == 3 else [0.8, 0.8, 0.9, 0.9]) if shown_here else []

    project.finish_each(four, of_coda, "figure1")
    export_reproduced(Plan(four), "table1")
    shutil.rmtree(project.root / "results")
    project.finish_each(reduced, of_coda, "figure1")
    drawing = make(reduced)
    assert drawing.points.set_index("x")["mean"].to_dict() == pytest.approx({4: 0.85, 8: 0.85, 16: 0.7})
    assert "mean over 4 seeds" in drawing.words
    assert "comes with the repository" in drawing.words
    (axes,) = drawing.picture.axes
    assert sorted(axes.collections[0].get_offsets()[:, 1]) == pytest.approx([0.7] * 3 + [0.8] * 4 + [0.9] * 4)
    assert axes.get_xlabel() == "p" and axes.get_xticks().tolist() == [4, 8, 16]
    without = make(reduced.model_copy(update={"shipped": False}))
    assert without.points["x"].tolist() == [16] and "comes with" not in without.words


def test_two_axes_of_panels_are_rows_and_columns(project: Project, reduced: Config) -> None:
    """Without the row of the imbalance 0.2, of which nothing ran."""
    figure(
        project,
        BASE | {"panels": ["imratio", "method"], "settings": {"p": [4, 8], "imratio": [0.1, 0.2, 0.3]}},
    )
    project.fill("localscgdam", "figure1", reduced)
    for cell in project.cells("localscgdam", "figure1", reduced):
        if cell.setting["imratio"] == 0.2 or (cell.setting["imratio"] == 0.3 and cell.method == "CoDA"):
            (project.root / cell.path).unlink()
    drawing = make(reduced)
    titles = [axes.get_title().replace("\n", ", ") for axes in drawing.picture.axes]
    assert titles == [f"imbalance ratio = {r}, {m}" for r in (0.1, 0.3) for m in ("CoDA", "LocalSGDM")]
    drawing.picture.draw_without_rendering()
    a, b, c, d = (axes.get_position() for axes in drawing.picture.axes)
    assert a.y0 == b.y0 > c.y0 == d.y0 and a.x0 == c.x0 < b.x0
    assert "no result yet" in [text.get_text() for text in drawing.picture.axes[2].texts]
    assert set(drawing.points["curve"]) == {"p = 4", "p = 8"}


def test_curves_over_cycles_samples_and_seconds_which_are_averaged(project: Project, reduced: Config) -> None:
    curve = {"iteration": [0, 4, 8], "round": [0, 1, 4], "samples": [0, 64, 128], "test_auc": [0.5, 0.8, 0.9]}
    cyclic = {"participation": {"rule": "cyclic", "clients": 1, "groups": 2}}
    x = {"cycle": [0, 0.5, 2], "samples": [0, 64, 128], "seconds": [0, 3, 5]}
    for name, expected in x.items():
        figure(project, ONE | {"x": name}, train=cyclic)
        (cell,) = project.cells("localscgdam", "figure1", reduced)
        for run in cell.runs:
            project.write_curve(run.key, curve)
        project.finish(cell, [0.9] * 3)
        for run, seconds in zip(cell.runs, (1, 2, 6), strict=True):
            remade(project, run.key, {"curve_seconds": [0, seconds, seconds + 2]})
        points = make(reduced).points
        assert points["x"].tolist() == expected and points["mean"].tolist() == pytest.approx([0.5, 0.8, 0.9])


@pytest.mark.parametrize(
    ("change", "missing"), [({"x": "cycle"}, "cycle"), ({"metrics": ["test_ap"]}, "test_ap")]
)
def test_what_no_curve_has_is_named(
    project: Project, reduced: Config, change: dict[str, Any], missing: str
) -> None:
    figure(project, BASE | change)
    project.fill("localscgdam", "figure1", reduced)
    said = f"the curves on file have no {missing}, only iteration, round, test_auc"
    assert said in make(reduced).words


def axes_of(curves: list[Curve], across: Across = Across("")) -> Axes:  # noqa: B008
    """The axes of one panel with these curves."""
    looks = style.styles_in_order([curve.label for curve in curves])
    (axes,) = draw(Content([Panel("", "test_auc", "", curves)], across, looks, [], str, 1)).axes
    return axes


def test_a_logarithmic_axis_leaves_out_what_it_has_no_place_for() -> None:
    points = pd.DataFrame({"x": [0, 1, 10], "mean": [0.1, 0.0, 0.5]})
    axes = axes_of(
        [Curve("a", points.assign(low=points["mean"], high=points["mean"]))], Across("", True, True)
    )
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[10, 0.5]]]
    begun = pd.DataFrame({"x": [0], "mean": [0.5], "low": [0.5], "high": [0.5]})
    axes = axes_of([Curve("a", begun, "diverged in 1 of 1 seeds", broken=True)], Across("round", log=True))
    assert all(line.get_xdata().size == 0 for line in axes.lines)  # type: ignore[union-attr]
    assert [text.get_text() for text in axes.texts] == ["a: diverged in 1 of 1 seeds"]


def test_the_axis_shows_what_training_reaches_and_not_where_it_begins() -> None:
    values = {"a": [0.5, 0.94, 0.98], "b": [9.0, 0.92, 0.96]}
    curves = [
        Curve(name, pd.DataFrame({"x": range(3), "mean": of, "low": of, "high": of, "published": 0.99}))
        for name, of in values.items()
    ]
    assert axes_of(curves).get_ylim() == pytest.approx((0.92 - 0.0035, 0.99 + 0.0035))
    low, high = axes_of([Curve("a", curves[0].points[:1])]).get_ylim()
    assert low < 0.5 < high, "nothing was trained yet"


def test_ticks_stand_at_the_values_of_a_setting_and_an_interval_does_not_press_means_together() -> None:
    points = pd.DataFrame({"x": [1.0, 8, 512], "mean": [0.81, 0.82, 0.89], "low": 0.7, "high": 0.95})
    seeds = pd.DataFrame({"x": [1.0, 512], "value": [0.8, 0.9]})
    curve = Curve("a", points, repeats=seeds)
    axes = axes_of([curve], Across("I", log=True, ticks=(1.0, 8.0, 512.0)))
    assert axes.get_xscale() == "log" and axes.get_xticks().tolist() == [1, 8, 512]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "8", "512"]
    assert not axes.get_xticks(minor=True).size
    low, high = axes.get_ylim()
    assert 0.78 < low < 0.8 and 0.9 < high < 0.92


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


@pytest.mark.parametrize(("count", "methods"), [(1, 2), (4, 27)])
def test_title_panels_words_and_legend_lie_apart(count: int, methods: int) -> None:
    names = [f"A-method-{number}" for number in range(methods)]
    values = pd.DataFrame(
        {"x": [0, 3e7], "mean": [0.974, 0.976], "low": [0.974, 0.976], "high": [0.974, 0.976]}
    )
    panels = [
        Panel(
            "K = 5, share of positives = 0.1", "test_auc", "test AUC", [Curve(name, values) for name in names]
        )
    ] * count
    content = Content(panels, Across("numbers sent"), style.styles_in_order(names), [], str, 3)
    figure = draw(content, "A title of a figure " * 5, "Words that say what was run; " * 12)
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
