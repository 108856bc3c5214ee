"""Numbers and curves kept in git: what an export leaves, and what is shown of it where its runs were not trained."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from report_project import REDUCED, Project, run_result, table_of

from fedbench import metric_table
from fedbench.commands.show import described_cell
from fedbench.errors import UserError
from fedbench.report.figures.build import drawing_of
from fedbench.report.page.gather import chapter
from fedbench.results.claims.findings import find
from fedbench.results.claims.judge import Effect
from fedbench.results.export import _with_others, add_curves, export_reproduced, in_order, thinned
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped, load_curves
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

FILE = "reproduced/reduced/localscgdam.csv"


@pytest.fixture
def shipped(project: Project) -> Project:
    """Everything of the reduced scale measured, exported, and its runs gone."""

    def make() -> None:
        project.fill()
        export_reproduced(Plan(REDUCED), "table1")
        shutil.rmtree(project.root / "results")

    project.once("shipped", make)
    return project


def rows_of_file(project: Project) -> pd.DataFrame:
    return pd.read_csv(project.root / FILE, dtype=str, keep_default_na=False)


def first(project: Project, config: Config) -> Cell:
    return project.cells("localscgdam", "table1", config)[0]


def shown(config: Config) -> pd.DataFrame:
    """The numbers of the table that any run is behind."""
    return table_of(config).rows.query("n_wanted > 0")


def test_shipped_numbers_are_shown_and_marked(project: Project) -> None:
    project.fill()
    trained = table_of()
    export_reproduced(Plan(REDUCED), "table1")
    shutil.rmtree(project.root / "results")
    table = table_of()
    for name in ("verdict", "values"):
        assert (trained.rows[name] == table.rows[name]).all()
    means = [of.rows["mean"].to_numpy() for of in (trained, table)]
    assert means[1] == pytest.approx(means[0], abs=1e-6, nan_ok=True)
    for row in table.rows.query("shipped").itertuples():
        name, _, lines = row.source.partition(":")
        at, last = map(int, lines.split("-"))
        read = [line.split(",") for line in (project.root / name).read_text().splitlines()[at - 1 : last]]
        assert all({row.dataset, row.method, str(row.p), "test_auc"} <= {*line} for line in read)
        assert [line[4] for line in read] == ["0", "1", "2"], "the lines of the file that it was read from"
    assert not trained.rows["shipped"].any() and table.rows["shipped"].sum() == 30
    said = table.markdown()
    assert (
        said.count("‡") == 32 and "‡" not in trained.markdown() and "‡: reference results, 3 seeds." in said
    )
    assert "Scale reduced: nothing trained here" in said and r"$^\ddagger$" in table.tex()
    assert not table_of(REDUCED.model_copy(update={"shipped": False})).rows["shipped"].any()


def test_a_cell_names_the_lines_of_its_reference_results(shipped: Project) -> None:
    Path("config/config.yaml").write_text("{paper: localscgdam, scale: reduced}\n")
    cell = first(shipped, REDUCED)
    (told,) = [
        line for line in described_cell(Plan(REDUCED), cell.name) if line.startswith("reference results: ")
    ]
    lines = re.fullmatch(rf".* seeds 0, 1, 2; {FILE}:(\d+)-(\d+); commit \w+", told)
    assert lines is not None, told
    keys, rows = {run.key for run in cell.runs}, rows_of_file(shipped)
    assert [at + 2 for at in rows.index[rows["key"].isin(keys)]] == [*range(int(lines[1]), int(lines[2]) + 1)]


def test_what_was_trained_or_failed_here_comes_first(shipped: Project) -> None:
    better, failed, *_ = shipped.cells()
    shipped.finish(better, [0.5, 0.5, 0.5])
    log = shipped.root / "logs/train/reduced" / f"{failed.name}.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: the disk is full\n")
    rows = shown(REDUCED)
    assert rows["shipped"].sum() == 28 and rows.loc[rows["mean"] == 0.5, "shipped"].tolist() == [False]
    (bad,) = rows[rows["status"] == "failed"].to_dict("records")
    assert bad["method"] == failed.method and not bad["shipped"] and "disk is full" in bad["reason"]


def test_another_scale_shows_them_as_what_they_are(shipped: Project) -> None:
    demo = Config(scale="demo")
    said, rows = table_of(demo).markdown(), table_of(demo).rows
    assert "**CIFAR10 (‡ scale reduced)**" in said
    assert "; ‡: reference results at scale reduced." in said.splitlines()[0], "the caption names each scale"
    assert set(rows.loc[rows["shipped"], "scale"]) == {"reduced"}
    shipped.finish(first(shipped, REDUCED), [0.5, 0.5, 0.5])
    assert table_of(demo).rows.equals(rows), "what ran there here is no other"
    assert "(‡ scale reduced)" not in table_of(Config(scale="paper")).markdown(), (
        "its own cells are to be run"
    )


def test_what_no_export_writes_is_named(shipped: Project) -> None:
    """Words for numbers, another form, and two values of a run, as after a merge that kept both sides."""
    path, rows = shipped.root / FILE, rows_of_file(shipped)
    before = path.read_text()
    for column, value, message in (
        ("value", "x", "x"), ("pace", "1 h", "1 h"), ("seed", "x", "x"), ("seed", "", "column 4"),
    ):  # fmt: skip
        rows.assign(**{column: [*rows[column][:3], value, *rows[column][4:]]}).to_csv(path, index=False)
        with pytest.raises(UserError, match=r"localscgdam\.csv.*" + message):
            table_of()
    path.write_text(before.replace(",seed,", ",repeat,", 1))
    with pytest.raises(UserError, match=r"localscgdam\.csv lacks the column seed.*`fedbench export`"):
        table_of()
    lines = before.splitlines()
    at = next(n for n, line in enumerate(lines) if ",test_auc,0.8" in line)
    path.write_text("\n".join([*lines, lines[at].replace(",test_auc,0.8", ",test_auc,0.7")]) + "\n")
    both = rf"\.csv:{len(lines) + 1}: .*test_auc.* 0\.7\d+.*\.csv:{at + 1} .*0\.8\d+"
    with pytest.raises(UserError, match=both):
        table_of()


def test_a_changed_key_and_a_seed_of_its_own_do_not_count(shipped: Project) -> None:
    """A row is found by the key of today; other seeds of a cell that was not trained here count too."""
    rows, cell = rows_of_file(shipped), first(shipped, REDUCED)
    of_cell = (rows["dataset"] == cell.dataset) & (rows["method"] == cell.method) & (rows["p"] == "4")
    rows.loc[of_cell & (rows["seed"] == "1"), "key"] = "0" * 16
    more = rows[of_cell & (rows["seed"] == "2")]
    more = more.assign(seed="7", key=cell.runs[0].seeded(7).key, value="0.25")
    pd.concat([rows, more]).to_csv(shipped.root / FILE, index=False)
    assert re.findall(r"(\d):", shown(REDUCED).iloc[0]["values"]) == ["0", "2", "7"]
    shipped.write(cell, [run_result(0, cell.runs[0].key, {"test_auc": 0.5})])
    assert re.findall(r"(\d):", shown(REDUCED).iloc[0]["values"]) == ["0", "2"], "with ours the planned alone"


def test_a_cell_is_shipped_with_all_metrics_that_are_asked_for_or_not_at_all(shipped: Project) -> None:
    rows, cell = Shipped(Plan(REDUCED)), first(shipped, REDUCED)
    assert rows.has(cell, ["test_auc"]) and not rows.has(cell, ["test_auc", "test_ap"])


def test_a_run_that_the_base_ships_too_keeps_the_metrics_of_both_its_own_first(shipped: Project) -> None:
    shipped.save_paper("mine", {"extends": "localscgdam", "tables": {"table1": {}}})
    cell, rows = shipped.cells("mine")[0], rows_of_file(shipped)
    base = rows[(rows["key"] == cell.runs[0].key) & (rows["metric"] == "test_auc")]
    also = [base.assign(metric=metric, value="0.25") for metric in ("test_auc", "test_ap")]
    pd.concat(also).to_csv(shipped.root / "reproduced/reduced/mine.csv", index=False)
    pd.concat([rows, base.assign(metric="test_f1")]).to_csv(shipped.root / FILE, index=False)
    run = Shipped(Plan(REDUCED, "mine")).runs(cell)[0]
    assert {name: run[name].value for name in ("test_auc", "test_ap", "test_f1")} == {
        "test_auc": 0.25, "test_ap": 0.25, "test_f1": float(base["value"].iloc[0])
    }  # fmt: skip


def without(project: Project, cell: Cell, seeds: list[int]) -> None:
    """Take some seeds of a cell away, as if another machine had trained them."""
    others = [run for run in project.runs(cell) if run["seed"] not in seeds]
    (project.root / cell.path).unlink()
    project.forget([run for run in cell.runs if run.seed in seeds])
    if others:
        project.write(cell, others)


def test_tables_and_claims_show_shipped_seeds_with_those_trained_here(project: Project) -> None:
    project.fill()
    before = shown(REDUCED)
    finding = find(Plan(REDUCED))[0].scales[1]
    export_reproduced(Plan(REDUCED.model_copy(update={"seeds": [0]})), "table1")
    for cell in project.cells():
        without(project, cell, [0])
    both, merged = shown(REDUCED), find(Plan(REDUCED))[0].scales[1]
    for name in ("values", "verdict", "status"):
        assert list(both[name]) == list(before[name])
    assert both["shipped"].all() and merged.verdict == finding.verdict and merged.shipped
    assert all(" reproduced/" in f" {source}" and "results/" in source for source in both["source"])
    assert "‡: (partly) reference results, 3 seeds." in table_of().markdown()
    assert "Scale reduced: 3 seeds, 100 iterations." in table_of().title, "two of each were trained here"


def test_a_run_trained_here_counts_before_the_shipped_one(project: Project) -> None:
    """One that diverged elsewhere, too, until that seed is trained here."""
    project.fill()
    good, bad, lost, *_ = project.cells()
    runs = project.runs(lost)
    project.write(lost, [*runs[:2], runs[2] | {"status": "diverged", "reason": "loss is nan"}])
    export_reproduced(Plan(REDUCED), "table1")
    before = shown(REDUCED).iloc[0]["values"].split()
    for cell in (good, bad, lost):
        without(project, cell, [0, 1, 2])
    project.write(good, [run_result(0, good.runs[0].key, {"test_auc": 0.5})])
    project.write(bad, [run_result(0, bad.runs[0].key, {}, "diverged", "loss is nan")])
    row, broken = shown(REDUCED).iloc[0], shown(REDUCED).iloc[1]
    assert row["values"] == " ".join(["0:0.5", *before[1:]]) and row["shipped"]
    assert (broken["status"], broken["n_seeds"]) == ("diverged", 2), "what went wrong here is not hidden"
    seen = []
    for seeds in ([], [0, 1], [0, 1, 2]):
        project.write(lost, [run_result(i, lost.runs[i].key, {"test_auc": 0.5}) for i in seeds])
        seen.append(shown(REDUCED).iloc[2][["status", "shipped", "n_seeds", "reason"]].tolist())
    told = ["diverged", True, 2, "1 of 3 seeds: loss is nan"]
    assert seen == [told, told, ["finished", False, 3, ""]]


HEAD = "dataset,p,imratio,method,seed,key,metric,value,status,reason,pace,sign,commit,hardware"


def exported(config: Config) -> pd.DataFrame:
    path = export_reproduced(Plan(config), "table1")
    return pd.read_csv(path, dtype={"key": str, "commit": str}).set_index(["key", "metric"])


def test_an_export_has_a_row_for_each_run_and_metric(project: Project) -> None:
    project.fill()
    full, part, *_ = project.cells()
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9, "floats_up": 8.0, "loss": 3.0}) for s in part.runs]
    runs[0] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(part, runs)
    rows, path = exported(REDUCED), project.root / FILE
    assert path.read_text().partition("\n")[0] == HEAD
    broken, good, _ = (run.key for run in part.runs)
    assert (rows.loc[good, "status"] == "finished").all() and (
        rows.loc[good, "commit"] == "0123456789ab"
    ).all()
    assert rows.loc[good, "value"].to_dict() == {"test_auc": 0.9, "floats_up": 8.0, "seconds": 1.5}
    (row,) = rows.loc[[broken]].itertuples()
    assert (row.status, row.reason, row.Index[1]) == ("diverged", "loss is nan", np.nan)
    key, measured = full.runs[0].key, project.runs(full)[0]["metrics"]["test_auc"]
    assert pd.isna(row.value) and rows.loc[(key, "device_var_test_auc"), "value"] == 2e-7
    assert rows.loc[(key, "test_auc"), "value"] == float(f"{measured:.6g}") != float(f"{measured:.5g}")
    assert abs(rows.loc[(key, "test_auc"), "pace"]) > 0
    assert set(rows["p"]) == {4, 8, 16} and rows.index.get_level_values("key").nunique() == 90
    before = path.read_bytes()
    (project.root / full.path).write_text("torn")  # a failed job hides no older number of the same key
    assert export_reproduced(Plan(REDUCED), "table1").read_bytes() == before


def table(*rows: str) -> pd.DataFrame:
    """Rows of a file: p, seed, key, metric and value; of a run that diverged without the last two."""
    columns = ["p", "seed", "key", "metric", "value"]
    return pd.DataFrame([[*row.split(), "", ""][:5] for row in rows], columns=columns)


def test_new_rows_replace_those_of_their_runs_and_of_other_configurations() -> None:
    """What the file has of other seeds and metrics stays; a run that two cells share has one number."""
    before = table(
        "4 0 run0 auc 0.1", "4 0 run0 ap 0.2", "4 1 old1 auc 0.3", "4 1 old1 ap 0.3", "4 2 run2 auc 0.4",
        "4 3 run3 auc 0.5", "4 4 run4", "8 0 run0 auc 0.1", "8 0 run0 ap 0.2", "8 9 run9 auc 0.6",
    )  # fmt: skip
    new = table("4 0 run0 auc 0.7", "4 1 run1 auc 0.8", "4 3 run3", "4 4 run4 auc 0.9")
    made = _with_others(new, before, ["p", "seed"])
    assert sorted(" ".join(row).strip() for row in made.to_numpy()) == [
        "4 0 run0 ap 0.2", "4 0 run0 auc 0.7", "4 1 run1 auc 0.8", "4 2 run2 auc 0.4", "4 3 run3",
        "4 4 run4 auc 0.9", "8 0 run0 ap 0.2", "8 0 run0 auc 0.7", "8 9 run9 auc 0.6",
    ]  # fmt: skip


def test_an_export_adds_to_what_is_there_and_needs_something_of_this_machine(project: Project) -> None:
    project.fill("localscgdam", "table1", REDUCED.model_copy(update={"seeds": [0]}))
    first = exported(REDUCED)
    shutil.rmtree(project.root / "results")
    with pytest.raises(UserError, match="no run of localscgdam/table1 at scale reduced was trained here"):
        exported(REDUCED)
    elsewhere = REDUCED.model_copy(update={"seeds": [1, 2], "datasets": ["CIFAR10"]})
    project.fill("localscgdam", "table1", elsewhere)
    both = exported(elsewhere)
    seeds = both.groupby("dataset")["seed"].agg(lambda seeds: sorted({*seeds})).to_dict()
    assert seeds == {"CIFAR10": [0, 1, 2], "FashionMNIST": [0]}
    pd.testing.assert_frame_equal(both.loc[first.index].sort_index(), first.sort_index())


def test_rows_are_in_the_order_of_their_numbers() -> None:
    """0.01 and 0.1 are no tie, 16 comes after 4, words after numbers."""
    rows = pd.DataFrame({"dataset": "D", "method": "M", "metric": "m", "seed": ["10", *"9012"]})
    rows["p"] = ["none", "16", "0.1", "4", "0.01"]
    assert list(in_order(rows, ["dataset", "p"])["p"]) == ["0.01", "0.1", "4", "16", "none"]
    assert list(in_order(rows.assign(p="4"), ["dataset", "p"])["seed"]) == ["0", "1", "2", "9", "10"]


CURVES = Path("reproduced/reduced/curves/localscgdam.csv")


def ship_curves(
    project: Project, config: Config, paper: str = "localscgdam", figure: str = "figure1"
) -> Plan:
    """Ship what is in the store of a figure's cells, and forget the store."""
    plan = Plan(config, paper)
    add_curves(plan, plan.cells(figure))
    shutil.rmtree(project.root / "results")
    return Plan(config, paper)


def test_a_figure_of_shipped_runs_is_that_of_the_runs_and_says_so(project: Project) -> None:
    """What was trained here comes first, and runs of other keys count for nothing."""
    project.fill("localscgdam", "figure1")
    trained = drawing_of(Plan(REDUCED), "figure1")
    plan = ship_curves(project, REDUCED)
    drawing = drawing_of(plan, "figure1")
    pd.testing.assert_frame_equal(drawing.points, trained.points, rtol=1e-5)
    assert "mean over 3 seeds" in drawing.words and "is a reference result" in drawing.words
    assert "is a reference result" not in trained.words
    other = drawing_of(Plan(REDUCED.model_copy(update={"datasets": ["Digits"]})), "figure1")
    assert other.points.equals(drawing.points)
    for without in ({"shipped": False}, {"set": {"train.iterations": 200}}):
        empty = drawing_of(Plan(REDUCED.model_copy(update=without)), "figure1")
        assert empty.points.empty and "no curve yet" in empty.words
    (cell, *_) = plan.cells("figure1")
    for run in cell.runs:
        project.write_curve(run.key, {"iteration": [0, 1000], "test_auc": [0.5, 0.6]})
    project.finish(cell, [0.6] * 3)
    levels, now = (
        of.groupby(["panel", "curve"])["mean"].last()
        for of in (drawing.points, drawing_of(plan, "figure1").points)
    )
    local = (cell.dataset, cell.method)
    assert now[local] == 0.6 < levels[local] and now.drop(local).equals(levels.drop(local))


def test_a_claim_over_curves_reads_shipped_ones_as_those_of_runs(project: Project) -> None:
    """A run whose curve is not shipped has no mean."""

    def over_curves() -> Effect | None:
        judged = find(Plan(REDUCED))[0].scales[1]
        return judged.verdict.overall if judged.ran else None

    ahead = {"method": "LocalSCGDAM", "than": ["CoDA"], "metric": "test_auc", "over": "curve"}
    project.change(claims=[{"says": "it is ahead all along", "in": ["figure1"], "better": ahead}])
    project.fill()
    trained = over_curves()
    export_reproduced(Plan(REDUCED), "table1")
    ship_curves(project, REDUCED)
    shipped = over_curves()
    assert (
        trained
        and shipped
        and [*vars(shipped).values()] == pytest.approx([*vars(trained).values()], rel=1e-3)
    )
    shutil.rmtree(project.root / "reproduced/reduced/curves")
    assert over_curves() is None


def test_a_mean_over_a_run_weighs_iterations_alike_not_evaluations(project: Project) -> None:
    cell, mean = first(project, REDUCED), metric_table.over_curve("test_auc")
    for run in cell.runs:
        project.write_curve(run.key, {"iteration": [0, 100, 200, 1000], "test_auc": [0.5, 0.7, 0.9, 0.9]})
    project.finish(cell, [0.9] * 3)
    values = [row.value for row in runs_of_cells([cell], [mean]) if row.metric == mean]
    assert values == pytest.approx([(60 + 80 + 720) / 1000] * 3)


def test_the_page_draws_what_is_shipped_and_no_figure_without_a_curve(project: Project) -> None:
    """A run that diverged is shipped as one."""
    Path("config/config.yaml").write_text("paper: localscgdam\n")  # commands of cells differ from it
    project.fill("localscgdam", "figure1")
    first, second = Plan(REDUCED).cells("figure1")[:2]
    project.write(first, [run_result(run.seed, run.key, {}, "diverged", "nan") for run in first.runs])
    trained = chapter(Plan(REDUCED))
    assert [drawing.name for drawing in trained.figures] == [*trained.paper.figures]
    page = chapter(ship_curves(project, REDUCED))
    (drawing,) = page.figures
    points = drawing.content.points
    assert drawing.name == "figure1" and {*points.loc[points["broken"], "curve"]} == {first.method}
    drawn, before = (
        {view.anchor: picture and texts(picture.address) for picture, views in of.groups for view in views}
        for of in (page, trained)
    )
    assert drawn == before and all(drawn[f"reduced/{cell.name}"] for cell in (first, second))


def texts(address: str) -> list[str]:
    """The texts of a picture; its lines differ in the digits that are shipped."""
    return re.findall(r"<text[^>]*>([^<]*)", unquote(address))


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
        ship_curves(project, config)
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
    drawing = drawing_of(ship_curves(project, config, "climb", "figure2"), "figure2")
    pd.testing.assert_frame_equal(drawing.points, trained.points, rtol=1e-5)
    assert len(drawing.points) and "is a reference result" in drawing.words


def test_a_file_that_was_changed_by_hand_is_refused(project: Project) -> None:
    project.fill("localscgdam", "figure1")
    plan = ship_curves(project, REDUCED)
    lines = CURVES.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",high"
    CURVES.write_text("\n".join(lines))
    with pytest.raises(UserError, match=r"curves/localscgdam\.csv: .*test_auc"):
        drawing_of(plan, "figure1")
    CURVES.write_text("round,test_auc\n1,0.5\n")
    with pytest.raises(UserError, match=r"column key.*`fedbench export`"):
        drawing_of(plan, "figure1")


def test_what_is_shipped_at_several_scales_is_shown_at_the_one_nearest_to_the_paper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    assert Shipped(Plan(Config(scale="demo"), "localscgdam")).scales == ["paper", "reduced", "demo"]
