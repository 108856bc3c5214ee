"""Numbers under ``reproduced/``: shown where nothing was trained, marked, and only while their keys are right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from report_project import Project, localscgdam

from fedbench.errors import UserError
from fedbench.plan.schema import Config
from fedbench.report.numbers import sums
from fedbench.report.numbers.export import export_reproduced
from fedbench.report.tables import build as tables

Fill = Callable[[str, str], Project]


@pytest.fixture
def shipped(filled: Fill, reduced: Config) -> Project:
    """Everything of the reduced scale measured, exported, and its runs gone."""
    project: Project = filled("localscgdam", "table1")
    export_reproduced("localscgdam", "table1", reduced, project.root)
    shutil.rmtree(project.root / "results")
    return project


def text(project: Project, config: Config) -> str:
    """The table as Markdown."""
    return tables.make("localscgdam", "table1", config, project.root).markdown()


def test_shipped_numbers_are_shown_and_marked(filled: Fill, reduced: Config) -> None:
    project: Project = filled("localscgdam", "table1")
    trained = tables.make("localscgdam", "table1", reduced, project.root)
    export_reproduced("localscgdam", "table1", reduced, project.root)
    shutil.rmtree(project.root / "results")
    table = tables.make("localscgdam", "table1", reduced, project.root)
    same = ["mean", "std", "values", "verdict", "key", "commit"]
    pd_before, pd_after = trained.rows[same], table.rows[same]
    assert (pd_before["verdict"] == pd_after["verdict"]).all() and (
        pd_before["values"] == pd_after["values"]
    ).all()
    assert pd_after["mean"].to_numpy() == pytest.approx(pd_before["mean"].to_numpy(), abs=1e-6, nan_ok=True)
    for row in trained.rows.query("status == 'finished'").itertuples():
        assert f"{row.dataset}/" in row.source and (project.root / "results").name in row.source
    for row in table.rows.query("shipped").itertuples():
        name, _, line = row.source.partition(":")
        read = (project.root / name).read_text().splitlines()[int(line) - 1].split(",")
        assert {row.dataset, row.method, row.key} <= {*read}, "the line of the file that it was read from"
    assert not trained.rows["shipped"].any() and table.rows["shipped"].sum() == 30
    said = table.markdown()
    assert said.count("‡") == 32 and "‡" not in trained.markdown()
    assert "‡: not trained here; shipped with the repository under reproduced/." in said
    assert "‡: CIFAR10 at scale reduced, 3 seeds" in said, "where from, at the end"
    assert "Scale: reduced (nothing run" in said
    assert r"$^\ddagger$" in table.tex()


def test_what_was_trained_here_comes_first(shipped: Project, reduced: Config) -> None:
    (cell, *_) = shipped.cells("localscgdam", "table1", reduced)
    shipped.finish(cell, [0.5, 0.5, 0.5])
    rows = tables.make("localscgdam", "table1", reduced, shipped.root).rows
    assert rows["shipped"].sum() == 29 and rows.loc[rows["mean"] == 0.5, "shipped"].tolist() == [False]


def test_another_scale_shows_them_as_what_they_are(shipped: Project) -> None:
    said = text(shipped, Config(scale="demo"))
    assert "**CIFAR10 (‡ scale reduced)**" in said and "CIFAR10 at scale reduced, 3 seeds" in said
    rows = tables.make("localscgdam", "table1", Config(scale="demo"), shipped.root).rows
    assert set(rows.loc[rows["shipped"], "scale"]) == {"reduced"}
    assert text(shipped, Config(scale="paper")).count("(‡ scale reduced)") == 0, "its own cells are to be run"


def test_methods_of_a_place_are_shown_at_one_scale(shipped: Project) -> None:
    """A scale nearer to the paper that lacks a method gives way to one that has them all."""
    paper, demo = Config(scale="paper", seeds=[0], datasets=["CIFAR10"]), Config(scale="demo")
    shipped.fill("localscgdam", "table1", paper)
    for cell in shipped.cells("localscgdam", "table1", paper):
        if cell.setting["p"] == 4 and cell.method == "CoDA":
            (shipped.root / cell.path).unlink()
            shipped.forget(cell.runs)
    export_reproduced("localscgdam", "table1", paper, shipped.root)
    shutil.rmtree(shipped.root / "results")
    rows = tables.make("localscgdam", "table1", demo, shipped.root).rows.query("dataset == 'CIFAR10'")
    scales = {p: set(part["scale"]) for p, part in rows.groupby("p")}
    assert scales == {4: {"reduced"}, 8: {"paper"}, 16: {"paper"}} and rows["shipped"].all()


def test_a_changed_configuration_has_no_shipped_numbers(shipped: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["methods"]["CoDA"]["params"] = {**paper["methods"]["CoDA"].get("params", {}), "lr": 0.123}
    shipped.save_paper("localscgdam", paper)
    rows = tables.make("localscgdam", "table1", reduced, shipped.root).rows
    assert not rows.loc[rows["method"] == "CoDA", "shipped"].any()
    assert rows.loc[rows["method"] != "CoDA", "shipped"].sum() == 24


def test_they_can_be_left_out(shipped: Project) -> None:
    assert "‡" not in text(shipped, Config(scale="reduced", shipped=False))


def test_a_mean_whose_seeds_nobody_kept_is_shown_with_its_spread(shipped: Project, reduced: Config) -> None:
    path = shipped.root / "reproduced" / "reduced" / "localscgdam" / "table1.csv"
    before = tables.make("localscgdam", "table1", reduced, shipped.root).rows
    lines = path.read_text().splitlines()
    place = lines[0].split(",").index("values")
    stripped = [
        ",".join("" if i == place and n else p for i, p in enumerate(line.split(",")))
        for n, line in enumerate(lines)
    ]
    path.write_text("\n".join(stripped) + "\n")
    sums.note(shipped.root / "reproduced", path)
    after = tables.make("localscgdam", "table1", reduced, shipped.root).rows
    assert after["std"].to_numpy() == pytest.approx(before["std"].to_numpy(), rel=1e-4, nan_ok=True)
    assert set(after.loc[after["shipped"], "values"]) == {""} and set(
        after.loc[after["shipped"], "n_seeds"]
    ) == {3}


def test_a_changed_digit_is_an_error_and_no_export_vouches_for_it(shipped: Project, reduced: Config) -> None:
    path = shipped.root / "reproduced" / "reduced" / "localscgdam" / "table1.csv"
    whole = path.read_text()
    path.write_text(whole.replace("0.9", "0.8", 1))
    message = r"table1\.csv is not the file that .*SHA256SUMS lists: .*\(make reproduced-sums\)"
    for show in (text, lambda *_: export_reproduced("localscgdam", "table1", reduced, shipped.root)):
        with pytest.raises(UserError, match=message):
            show(shipped, reduced)
    path.write_text(whole)
    assert "‡" in text(shipped, reduced)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("values", "0:x"),
        ("values", "0.9"),
        ("paces", "0:x"),
        ("signs", "0:lost"),
        ("signs", "flat"),
        ("seconds", "1 h"),
        ("n_seeds", "nan"),
    ],
)
def test_a_row_that_no_export_wrote_is_named(
    shipped: Project, reduced: Config, column: str, value: str
) -> None:
    path = shipped.root / "reproduced" / "reduced" / "localscgdam" / "table1.csv"
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows.loc[3, column] = value
    rows.to_csv(path, index=False)
    sums.note(shipped.root / "reproduced", path)
    with pytest.raises(UserError, match=r"table1\.csv, line 5: "):
        text(shipped, reduced)


def test_shipped_numbers_are_not_exported_again_as_ones_own(shipped: Project, reduced: Config) -> None:
    path: Path = shipped.root / "reproduced" / "reduced" / "localscgdam" / "table1.csv"
    before = path.read_bytes()
    assert export_reproduced("localscgdam", "table1", reduced, shipped.root).read_bytes() == before
