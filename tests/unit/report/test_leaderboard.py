"""A leaderboard from results on disk: ties, controls, failures, budgets, targets, one's own method."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_project import TRAIN, Project, run_result

from fedbench import metric_table
from fedbench.errors import UserError
from fedbench.report import tables
from fedbench.report.figures import build as figures
from fedbench.results.export import export_reproduced
from fedbench.results.leaderboard import board_of
from fedbench.study.configuration import load_paper
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.workflow.inputs import Inputs

SEEDS = list(range(8))
LEVELS = {"Good": 0.95, "Fair": 0.949, "Bad": 0.8, "Guess": 0.5, "Pooled": 0.97, "Mine": 0.9}
SENT = {"Good": 400.0, "Fair": 200.0, "Bad": 300.0, "Guess": 100.0, "Pooled": 800.0, "Mine": 250.0}


def league() -> dict[str, Any]:
    dataset = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}}
    board = {"random": "Guess", "pooled": "Pooled"}
    common = {"title": "t", "kind": "leaderboard", "datasets": ["Ones"], "metrics": ["test_auc"]}
    budget = {"budget": "floats_up", "within": {"Ones": 100}, "to": {"Ones": 0.85}}
    return {
        "title": "A league",
        "citation": "none",
        "defaults": {"data": {"clients": 4}, "train": TRAIN},
        "datasets": {"Ones": dataset, "Twos": {**dataset, "data": {"dataset": "digits", "clients": 5}}},
        "methods": {name: {"algorithm": name.lower()} for name in LEVELS if name != "Mine"},
        "tables": {
            "leaderboard": {**common, "datasets": ["Ones", "Twos"], "board": board},
            "leaderboard_bytes": {**common, "board": {**board, **budget}},
        },
        "figures": {
            "figure1": {
                "title": "f", "kind": "pareto", "panels": "dataset", "datasets": ["Ones"], "methods": [],
                "settings": {}, "metrics": ["test_auc"], "x": "floats_up",
            }
        },
    }  # fmt: skip


@pytest.fixture
def config() -> Config:
    return Config(scale="reduced", seeds=SEEDS)


@pytest.fixture
def board(project: Project, config: Config) -> Project:
    """A league in which everything has run; Bad diverged on Twos."""
    project.save_paper("league", league())
    project.once("board", lambda: fill(project, "league", config))
    return project


def fill(project: Project, paper: str, config: Config, only: str = "") -> None:
    """Finish the cells of a leaderboard: two evaluations on the way, at half of what is sent and at its end."""
    for cell in project.cells(paper, "leaderboard", config):
        if only and cell.method != only:
            continue
        runs = []
        for spec in cell.runs:
            noise = 0.002 * np.random.default_rng([spec.seed, len(cell.method), ord(cell.method[0])]).normal()
            end, sent = LEVELS[cell.method] + noise, SENT[cell.method]
            if cell.method == "Bad" and cell.dataset == "Twos":
                runs.append(run_result(spec.seed, spec.key, {}, "diverged", "loss became infinite"))
                continue
            curve = pd.DataFrame(
                {"round": [0, 1, 2], "floats_up": [0, sent / 2, sent], "test_auc": [0.5, end - 0.1, end]}
            )
            project.write_curve(spec.key, curve)
            costs = {"floats_up": sent, "samples": 1000.0}
            runs.append(run_result(spec.seed, spec.key, {"test_auc": end, "test_loss": -end, **costs}))
        project.write(cell, runs)


def made(config: Config) -> pd.DataFrame:
    return tables.table_of(Plan(config, "league"), "leaderboard").rows.set_index(["dataset", "method"])


def test_methods_are_ranked_ties_share_a_rank_and_controls_have_none(board: Project, config: Config) -> None:
    rows = made(config).loc["Ones"]
    assert rows["rank_best"].dropna().to_dict() == {"Good": 1, "Fair": 1, "Bad": 3}
    assert rows["rank_worst"].dropna().to_dict() == {"Good": 2, "Fair": 2, "Bad": 3}
    said = tables.table_of(Plan(config, "league"), "leaderboard").markdown()
    assert "Ones: 2 of 3 methods may be the best (8 seeds): Good, Fair" in said or "Fair, Good" in said
    assert said.index("Good") < said.index("Bad") < said.index("Pooled") < said.index("| Guess")
    assert re.search(r"\| Guess +\| control +\| [^|]+\| – +\| – +\|", said), "random scores cost nothing"


def test_a_seed_without_a_number_counts_for_no_method() -> None:
    """As an AUC has none where a class is missing."""
    values = [{0: 0.5, 1: 0.6, 2: 0.7}, {0: 0.4, 1: math.nan, 2: 0.5}]
    frame = pd.DataFrame({"method": ["A", "B"], "status": "finished", "values": values})
    spec: Any = SimpleNamespace(random="", controls=())
    measure = metric_table.find("test_auc")
    assert measure is not None
    board = board_of("D", spec, frame, measure, {})
    assert board.seeds == [0, 2] and [line.method for line in board.ranked] == ["A", "B"]


def test_a_method_that_is_another_with_its_values_shares_its_rank(board: Project, config: Config) -> None:
    """Bad is Fair at mu = 0 and Fair is always Good: with mu = 0 one method is ranked, with mu = 1 two are."""
    paper = league()
    paper["methods"]["Fair"]["twin"] = {"of": "Good"}
    paper["methods"]["Good"]["label"] = "Good & co"
    for mu, ranked in ((0.0, {"Good": 1, "Fair": 1, "Bad": 1}), (1.0, {"Good": 1, "Fair": 1, "Bad": 2})):
        paper["methods"]["Bad"] |= {"params": {"mu": mu}, "twin": {"of": "Fair", "when": {"mu": 0.0}}}
        board.save_paper("league", paper)
        fill(board, "league", config)
        table = tables.table_of(Plan(config, "league"), "leaderboard")
        rows = table.rows.set_index(["dataset", "method"]).loc["Ones"]
        assert rows["rank_worst"].dropna().to_dict() == ranked
        block = next(block for block in table.grid.blocks if block.heading.startswith("Ones"))
        ranks = {row.label: row.entries[0][0].value for row in block.rows}
        assert "Good & co" in ranks and ranks["Fair"] == "1 (is Good & co)"
        assert ranks["Bad"] == ("1 (is Good & co)" if mu == 0 else "2")
        said = [note for note in table.notes if note.startswith("Ones: ")]
        best = "Ones: 1 of 2 methods may be the best (8 seeds): Good & co."
        assert said == ([] if mu == 0 else [best]), "of one no tie is said"


def test_of_a_loss_the_least_is_the_best_and_its_average_has_its_sign(board: Project, config: Config) -> None:
    paper = league()
    paper["tables"]["leaderboard"]["metrics"] = ["test_loss"]
    board.save_paper("league", paper)
    table = tables.table_of(Plan(config, "league"), "leaderboard")
    ranks = table.rows.set_index(["dataset", "method"]).loc["Ones", "rank_best"].dropna()
    assert ranks.to_dict() == {"Good": 1, "Fair": 1, "Bad": 3}
    shown = {row.label: row.entries[0][1].value for row in table.grid.blocks[0].rows}
    assert [*shown][2] == "Bad", "an average too"
    assert float(shown["Good"]) == pytest.approx(-0.95, abs=0.003)


@pytest.mark.parametrize(
    "twin, message",
    [
        ({"of": "Fair"}, "earlier method 'Fair'"),  # its own name, and so any circle
        ({"of": "Good", "when": {"mu": 0.0}}, "twin.when: 'mu' is none of params"),
    ],
)
def test_a_twin_names_an_earlier_method_and_its_own_values(
    project: Project, twin: dict[str, Any], message: str
) -> None:
    paper = league()
    paper["methods"]["Fair"]["twin"] = twin
    project.save_paper("league", paper)
    with pytest.raises(UserError, match=message):
        load_paper("league")


def test_few_seeds_tie_all_and_it_is_said(board: Project) -> None:
    two = Config(scale="reduced", seeds=[0, 1])
    fill(board, "league", two)
    rows = made(two).loc["Ones"]
    assert set(rows["rank_best"].dropna()) == {1} and set(rows["rank_worst"].dropna()) == {3}
    said = tables.table_of(Plan(two, "league"), "leaderboard").markdown()
    assert "Ones: 2 seeds, too few to distinguish any two of 3 methods: all are tied." in said
    three = Config(scale="reduced", seeds=[0, 1, 2])
    assert "too few to distinguish" not in tables.table_of(Plan(three, "league"), "leaderboard").markdown()
    first = Config(scale="reduced", seeds=[0])
    (block,) = tables.table_of(Plan(first, "league"), "leaderboard_bytes").grid.blocks
    needed = {row.label: row.entries[0][2].value for row in block.rows}
    assert needed["Bad"] == "∞", "of one seed there is no share"


def test_a_failed_cell_counts_as_random_scores(board: Project, config: Config) -> None:
    table = tables.table_of(Plan(config, "league"), "leaderboard")
    (block,) = [block for block in table.grid.blocks if block.heading.startswith("Twos")]
    bad = next(row for row in block.rows if row.label == "Bad")
    assert bad.entries[0][0].value == "3 (as Guess)" and bad.entries[0][1].value.startswith("diverged")
    (average,) = [block for block in table.grid.blocks if block.heading.startswith("Average")]
    shown = next(row for row in average.rows if row.label == "Bad").entries[0][1].value
    assert float(shown) == pytest.approx((0.8 + 0.5) / 2, abs=0.005)
    cells = board.cells("league", "leaderboard", config)
    fair = next(cell for cell in cells if (cell.method, cell.dataset) == ("Fair", "Ones"))
    board.finish(fair, [math.nan] * len(SEEDS))
    (ones,) = [
        block
        for block in tables.table_of(Plan(config, "league"), "leaderboard").grid.blocks
        if block.heading.startswith("Ones")
    ]
    assert next(row for row in ones.rows if row.label == "Fair").entries[0][0].value == "3 (as Guess)"


def lose(board: Project, config: Config, method: str, dataset: str) -> None:
    """Take a method's runs on a dataset away."""
    for cell in board.cells("league", "leaderboard", config):
        if (cell.method, cell.dataset) == (method, dataset):
            (board.root / cell.path).unlink()
            board.forget(cell.runs)


@pytest.mark.parametrize("planned", [True, False], ids=["not run", "not planned"])
def test_a_method_that_lacks_a_dataset_has_no_place_on_average(
    board: Project, config: Config, planned: bool
) -> None:
    paper = league()
    if planned:
        lose(board, config, "Fair", "Twos")
    else:
        paper["methods"]["Fair"]["only"] = {"dataset": ["Ones"]}
    board.save_paper("league", paper)
    average, *_ = tables.table_of(Plan(config, "league"), "leaderboard").grid.blocks
    ranks = {row.label: row.entries[0][0].value for row in average.rows}
    assert average.heading.startswith("Average") and ranks["Fair"] == "–" and ranks["Good"] == "1"


def test_only_datasets_of_one_scale_are_averaged(board: Project, config: Config) -> None:
    """Ones and Twos were shipped at scale reduced; then Twos runs at scale demo."""

    def headings(config: Config) -> list[str]:
        return [block.heading for block in tables.table_of(Plan(config, "league"), "leaderboard").grid.blocks]

    both = ["Average over Ones, Twos (reduced), test AUC", "Ones (reduced)", "Twos (reduced)"]
    assert headings(config) == both
    export_reproduced(Plan(config, "league"), "leaderboard")
    board.save_paper("league", {**league(), "scales": {"demo": {"datasets": ["Twos"]}}})
    demo = Config(scale="demo", seeds=SEEDS)
    fill(board, "league", demo)
    assert headings(demo) == ["Ones (reduced)", "Twos (demo)"]
    assert headings(demo.model_copy(update={"datasets": ["Twos"]})) == ["Twos (demo)"], "as the call asks"
    drawing = figures.drawing_of(Plan(demo, "league"), "figure1")
    assert [panel.title for panel in drawing.content.panels] == ["Ones (reduced)"]
    assert "mean over 8 seeds" in drawing.words and "not run at this scale" not in drawing.words
    assert "comes with the repository" in drawing.words


def test_a_budget_takes_the_last_evaluation_within_it_and_a_miss_is_infinite(
    board: Project, config: Config
) -> None:
    table = tables.table_of(Plan(config, "league"), "leaderboard_bytes")
    rows = {row.label: row.entries[0] for row in table.grid.blocks[0].rows}
    assert float(rows["Fair"][1].value) == pytest.approx(0.849, abs=0.005)  # of 200 sent, half are within 100
    assert float(rows["Good"][1].value) == 0.5, "its first evaluation after the start comes at 200"
    assert rows["Bad"][2].value == "∞ (0/8 seeds)" and float(rows["Good"][2].value) <= 400
    assert "within 100 numbers sent; target test AUC 0.85" in table.grid.blocks[0].heading


def mine(project: Project) -> None:
    project.save_paper(
        "mine",
        {
            "extends": "league", "title": "Mine", "methods": {"Mine": {"algorithm": "mine"}},
            "tables": {"leaderboard": {}, "leaderboard_bytes": {}}, "figures": {"figure1": {}},
        },
    )  # fmt: skip


def test_ones_own_method_is_ranked_among_shipped_rows_and_nothing_else_is_trained(
    board: Project, config: Config
) -> None:
    for table in ("leaderboard", "leaderboard_bytes"):
        export_reproduced(Plan(config, "league"), table)
    shutil.rmtree(board.root / "results")
    mine(board)
    assert load_paper("mine").tables["leaderboard"].methods[-1] == "Mine"
    inputs = Inputs(config)
    for asked in (inputs.of_table("mine", "leaderboard"), inputs.of_table("mine", "leaderboard_bytes")):
        assert {Path(path).stem for path in asked} == {"Mine"}
    assert {Path(path).stem for path in inputs.of_figure("mine", "figure1")} == {"Mine"}
    everything = Inputs(config.model_copy(update={"shipped": False}))
    assert len(everything.of_table("mine", "leaderboard")) == 2 * len(LEVELS)
    assert len(inputs.of_table("league", "leaderboard")) == 2 * (len(LEVELS) - 1), "its own are trained"

    fill(board, "mine", config, only="Mine")
    table = tables.table_of(Plan(config, "mine"), "leaderboard")
    said = table.markdown()
    assert "Mine on Ones: rank 3 of 4." in said and "on average: rank 3 of 4." in said
    shown = table.rows.set_index(["dataset", "method"])["shipped"]
    assert not shown["Ones", "Mine"] and shown["Ones", "Good"] and shown["Twos", "Bad"]
    drawing = figures.drawing_of(Plan(config, "mine"), "figure1")
    assert {"Good", "Fair", "Bad", "Mine", "Pareto front"} == set(drawing.points["curve"])
    front = drawing.points.query("curve == 'Pareto front'")
    assert front["x"].tolist() == [200.0, 400.0]


def test_a_shipped_row_of_another_configuration_is_trained(board: Project, config: Config) -> None:
    export_reproduced(Plan(config, "league"), "leaderboard")
    shutil.rmtree(board.root / "results")
    paper = league()
    paper["methods"]["Good"]["params"] = {"lr": 0.7}
    board.save_paper("league", paper)
    mine(board)
    assert {Path(path).stem for path in Inputs(config).of_table("mine", "leaderboard")} == {"Mine", "Good"}


@pytest.mark.parametrize("part", ["within", "to"])
def test_a_budget_has_to_be_fixed_for_each_dataset(part: str, project: Project) -> None:
    paper = league()
    paper["tables"]["leaderboard_bytes"]["board"][part] = {"Twos": 3}
    project.save_paper("league", paper)
    with pytest.raises(UserError, match=f"{part} says nothing of Ones; fix it beforehand"):
        load_paper("league")
