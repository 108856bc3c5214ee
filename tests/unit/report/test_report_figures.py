"""Figures: what is drawn, what is said when it is not, and that the files are the same each time."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from report_project import METHODS, Project, localscgdam, run_result

from fedbench.errors import UserError
from fedbench.report.figures import build as figures
from fedbench.report.figures import style
from fedbench.report.figures.plot import render
from fedbench.results.published import load_published
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


def test_curves_may_be_values_of_a_setting(project: Project, reduced: Config) -> None:
    project.change(figures={"figure1": {"methods": ["CoDA"], "settings": {"p": [4, 16]}}})
    project.fill("localscgdam", "figure1", reduced)
    drawing = figures.drawing_of(Plan(reduced), "figure1")
    assert set(csv_of(drawing)["curve"]) == {"p = 4", "p = 16"}


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
    for axes, dataset in zip(drawing.picture.axes, ("CIFAR10", "FashionMNIST"), strict=True):
        thin = [line for line in axes.lines if line.get_linewidth() < 1]
        values = {line.get_color(): line.get_ydata()[0] for line in thin}
        assert values == {
            style.style_of(m).colour: values_of[
                (("dataset", dataset), ("p", 4), ("method", m)), "test_auc"
            ].printed
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


def test_what_a_call_sets_is_on_the_picture(project: Project) -> None:
    config = Config(scale="demo", set={"train.iterations": 48})
    project.fill("localscgdam", "figure4", config)
    drawing = figures.drawing_of(Plan(config), "figure4")
    assert "Set for this call: train.iterations = 48" in words(drawing)


def test_a_figure_has_one_title(project: Project) -> None:
    demo = Config(scale="demo")
    paper: dict[str, Any] = localscgdam()
    project.fill("localscgdam", "figure1", demo)
    drawing = figures.drawing_of(Plan(demo), "figure1")
    assert drawing.title == f"{paper['figures']['figure1']['title']}: Digits (stand-in)"
    assert [axes.get_title() for axes in drawing.picture.axes] == [""]
    assert drawing.picture.texts and not drawing.plain.texts, "a page has the title beside it"


def test_methods_of_a_figure_differ_in_colour_and_in_dash_or_marker() -> None:
    for group in (
        METHODS,
        ["LocalSCGDAM", "SCAFFOLD", "FedProx"],
        ["Baseline", "CLIMB", "Ratio-Loss", "Focal-Loss"],
        [
            "CyCp-FedAVG",
            "A-FedAVG",
            "A-SCAFFOLD",
            "RS-Minimax",
            "RS-Pairwise",
            "CyCp-Minimax",
            "CyCp-Pairwise",
        ],
    ):
        looks = [style.style_of(name) for name in group]
        assert len({look.colour for look in looks}) == len(group)
        assert len({(str(look.dash), look.marker) for look in looks}) == len(group)


def test_an_unknown_method_keeps_its_looks() -> None:
    # on every machine and run
    assert style.style_of("my_method") == style.Style(style.PINK, style.DOTTED, "v")
    assert len({style.style_of(f"my_method_{i}") for i in range(40)}) > 20
    ordered = style.styles_in_order([f"I = {i}" for i in range(6)])
    assert len({look.colour for look in ordered.values()}) == 6
