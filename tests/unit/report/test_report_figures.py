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
from matplotlib.colors import to_hex
from report_project import METHODS, Project, localscgdam, run_result
from scipy.stats import t

from fedbench import sealed_json
from fedbench.errors import UserError
from fedbench.report.figures import build as figures
from fedbench.report.figures import style
from fedbench.report.figures.parts import Across, Content, Curve, Panel
from fedbench.report.figures.plot import draw, render
from fedbench.results.export import export_reproduced
from fedbench.results.published import load_published
from fedbench.results.statistics import COVERAGE
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
    assert [path.name for path in paths] == [
        f"figure1.{kind}" for kind in ("pdf", "svg", "png", "csv", "json")
    ]
    first = [path.read_bytes() for path in paths]
    for path, content in zip(paths, first, strict=True):
        assert content.startswith(MAGIC.get(path.suffix[1:], b""))
    figures.save_figure(Plan(reduced), "figure1")
    assert [path.read_bytes() for path in paths] == first
    assert b"CreationDate" not in first[0] and b"<dc:date>" not in first[1]


def test_points_drawn_are_mean_and_range_over_seeds(filled: Fill, reduced: Config) -> None:
    project = filled("localscgdam", "figure1")
    cell = project.cells("localscgdam", "figure1", reduced)[0]
    curves = [pd.read_csv(project.root / "results" / "runs" / r.key / "curve.csv") for r in cell.runs]
    last = [curve["test_auc"].iloc[-1] for curve in curves]
    drawn = csv_of(figures.drawing_of(Plan(reduced), "figure1"))
    assert list(drawn["panel"].unique()) == ["CIFAR10", "FashionMNIST"]
    end = drawn[(drawn["panel"] == cell.dataset) & (drawn["curve"] == cell.method)].iloc[-1]
    assert end["x"] == 1000
    assert end["mean"] == pytest.approx(sum(last) / 3, rel=1e-5)
    assert (end["low"], end["high"]) == pytest.approx((min(last), max(last)), rel=1e-5)


def test_it_says_what_was_not_run_and_what_stands_in(project: Project, filled: Fill, reduced: Config) -> None:
    filled("localscgdam", "figure1")
    text = words(figures.drawing_of(Plan(reduced), "figure1"))
    assert "not run at this scale:" in text and "Melanoma" in text
    assert "mean over 3 seeds, band from lowest to highest" in text
    demo = Config(scale="demo")
    project.fill("localscgdam", "figure4", demo)
    text = words(figures.drawing_of(Plan(demo), "figure4"))
    assert "Digits stands in for CATvsDOG" in text and "one seed" in text
    assert "not run at this scale" not in text
    assert "imbalance ratio = 0.01" in text and "imbalance ratio = 0.2" in text


def test_a_figure_with_nothing_run_is_drawn_and_says_so(project: Project, reduced: Config) -> None:
    drawing = figures.drawing_of(Plan(reduced), "figure4")
    assert "no curve to draw" in words(drawing) and "not run at this scale: CATvsDOG" in words(drawing)
    assert csv_of(drawing).empty


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
    drawing = figures.drawing_of(Plan(reduced, "climb"), "figure1")
    drawn = csv_of(drawing)
    assert set(drawn["panel"]) == {"Minority accuracy", "Overall accuracy"}
    assert set(drawn["metric"]) == {"test_minority_accuracy", "test_overall_accuracy"}
    assert drawn["x"].max() == 250  # rounds, not iterations


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"panels": "period"}, "unknown panels of a figure 'period'"),
        ({"panels": "p"}, "several datasets need panels: dataset"),
    ],
)
def test_a_figure_that_does_not_fit_is_refused(
    project: Project, reduced: Config, change: dict[str, Any], message: str
) -> None:
    project.change(figures={"figure1": change})
    with pytest.raises(UserError, match=message):
        figures.save_figure(Plan(reduced), "figure1")


def test_an_unknown_figure_is_named(project: Project, reduced: Config) -> None:
    with pytest.raises(UserError, match="unknown figure of localscgdam 'figure9'"):
        figures.save_figure(Plan(reduced), "figure9")


def test_the_published_value_is_a_thin_line_with_a_legend_entry(filled: Fill, reduced: Config) -> None:
    filled("localscgdam", "figure1")
    drawing = figures.drawing_of(Plan(reduced), "figure1")
    printed = load_published("localscgdam", "localscgdam_table1.csv")
    rows = {"dataset": ["CIFAR10", "FashionMNIST"], "p": [4], "method": METHODS}
    values_of = printed.at(rows, ["test_auc"])
    looks = style.styles_of_methods(load_paper("localscgdam"))
    for axes, dataset in zip(drawing.picture.axes, ("CIFAR10", "FashionMNIST"), strict=True):
        thin = [line for line in axes.lines if line.get_linewidth() < 1]
        values = {line.get_color(): line.get_ydata()[0] for line in thin}
        assert values == {
            looks[m].colour: values_of[(("dataset", dataset), ("p", 4), ("method", m)), "test_auc"].printed
            for m in METHODS
        }
    (legend,) = drawing.picture.legends
    assert [text.get_text() for text in legend.get_texts()].count("published") == 1


def test_what_stands_in_or_has_another_setting_has_no_published_line(
    project: Project, reduced: Config
) -> None:
    project.change(figures={"figure1": {"settings": {"p": [4], "imratio": [0.05]}, "panels": ["dataset"]}})
    demo = Config(scale="demo")
    for config, name in ((demo, "figure4"), (reduced, "figure1")):
        project.fill("localscgdam", name, config)
        drawing = figures.drawing_of(Plan(config), name)
        assert drawing.points["published"].isna().all() and len(drawing.points)
        assert "published" not in [text.get_text() for text in drawing.picture.legends[0].get_texts()]


def test_a_figure_has_one_title(project: Project) -> None:
    demo = Config(scale="demo")
    paper: dict[str, Any] = localscgdam()
    project.fill("localscgdam", "figure1", demo)
    drawing = figures.drawing_of(Plan(demo), "figure1")
    assert drawing.title == f"{paper['figures']['figure1']['title']}: Digits (stand-in)"
    assert [axes.get_title() for axes in drawing.picture.axes] == [""]
    assert drawing.picture.texts and not drawing.plain.texts, "a page has the title beside it"


@pytest.mark.parametrize("study", paper_keys())
def test_methods_of_a_study_differ_without_colour_too_and_what_it_proposes_is_thick(study: str) -> None:
    paper = load_paper(study)
    looks = style.styles_of_methods(paper)
    for other in ("dash", "colour"):
        assert len({(getattr(look, other), look.marker) for look in looks.values()}) == len(paper.methods)
    assert len({look.colour for look in looks.values()}) == min(len(paper.methods), len(style.COLOURS))
    assert {name for name, look in looks.items() if look.width == style.THICK} == {*paper.proposes}


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


def test_the_axis_shows_what_training_reaches_and_not_where_it_begins() -> None:
    values = {"a": [0.5, 0.94, 0.98], "b": [9.0, 0.92, 0.96]}
    curves = [
        Curve(name, pd.DataFrame({"x": range(3), "mean": of, "low": of, "high": of, "published": 0.99}))
        for name, of in values.items()
    ]
    looks = style.styles_in_order([*values])
    (axes,) = draw(Content([Panel("", "test_auc", "", curves)], Across(""), looks, [], str, 1)).axes
    assert axes.get_ylim() == pytest.approx((0.92 - 0.0035, 0.99 + 0.0035))
    begun = [Curve("a", curves[0].points[:1])]
    (axes,) = draw(Content([Panel("", "test_auc", "", begun)], Across(""), looks, [], str, 1)).axes
    low, high = axes.get_ylim()
    assert low < 0.5 < high, "nothing was trained yet"


def test_ticks_stand_at_the_values_of_a_setting() -> None:
    points = pd.DataFrame({"x": [1.0, 8, 512], "mean": 0.9, "low": 0.8, "high": 1.0})
    curve = Curve("a", points, repeats=pd.DataFrame({"x": [1.0], "value": [0.9]}))
    across = Across("I", log=True, ticks=(1.0, 8.0, 512.0))
    looks = style.styles_in_order(["a"])
    (axes,) = draw(Content([Panel("", "test_auc", "", [curve])], across, looks, [], str, 1)).axes
    assert axes.get_xscale() == "log" and axes.get_xticks().tolist() == [1, 8, 512]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "8", "512"]
    assert not axes.get_xticks(minor=True).size


def test_a_curve_that_broke_before_a_logarithmic_axis_begins_is_no_curve() -> None:
    points = pd.DataFrame({"x": [0], "mean": [0.5], "low": [0.5], "high": [0.5]})
    curve = Curve("a", points, "diverged in 1 of 1 seeds", broken=True)
    panel = Panel("", "test_auc", "", [curve])
    looks = style.styles_in_order(["a"])
    (axes,) = draw(Content([panel], Across("round", log=True), looks, [], str, 1)).axes
    assert all(line.get_xdata().size == 0 for line in axes.lines)  # type: ignore[union-attr]
    assert [text.get_text() for text in axes.texts] == ["a: diverged in 1 of 1 seeds"]


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
