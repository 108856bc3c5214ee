"""A leaderboard from results on disk: ties, controls, failures, budgets, targets, one's own method."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_project import TRAIN, Project, run_result, table_of

from fedbench.errors import UserError
from fedbench.report import leaderboard
from fedbench.report.figures import build as figures
from fedbench.report.layout import Block
from fedbench.results.export import export_reproduced
from fedbench.results.frame import Compared
from fedbench.study.configuration import load_paper
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.workflow.inputs import Inputs

LEVELS = {"Good": 0.95, "Fair": 0.949, "Bad": 0.8, "Guess": 0.5, "Pooled": 0.97, "Mine": 0.9}
SENT = {"Good": 400.0, "Fair": 200.0, "Bad": 300.0, "Guess": 100.0, "Pooled": 800.0, "Mine": 250.0}
CONFIG = Config(scale="reduced", seeds=[*range(8)])


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
def board(project: Project) -> Project:
    """A league in which everything has run; Bad diverged on Twos."""
    project.save_paper("league", league())
    project.once("board", lambda: fill(project, "league", CONFIG))
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
            curve = {"round": [0, 1, 2], "floats_up": [0, sent / 2, sent], "test_auc": [0.5, end - 0.1, end]}
            project.write_curve(spec.key, curve)
            costs = {"floats_up": sent, "samples": 1000.0}
            runs.append(run_result(spec.seed, spec.key, {"test_auc": end, "test_loss": -end, **costs}))
        project.write(cell, runs)


def blocks(config: Config = CONFIG, name: str = "leaderboard") -> dict[str, Block]:
    """The blocks of a table by the first word of their headings."""
    return {block.heading.split()[0]: block for block in table_of(config, "league", name).grid.blocks}


def column(block: Block, at: int = 0) -> dict[str, str]:
    """What stands in a column, by method: its rank, its value, what a target took."""
    return {row.label: row.entries[0][at].value for row in block.rows}


def ranks_of(config: Config = CONFIG) -> dict[str, tuple[float, float]]:
    rows = table_of(config, "league", "leaderboard").rows.query(
        "dataset == 'Ones' and rank_best == rank_best"
    )
    return {row.method: (row.rank_best, row.rank_worst) for row in rows.itertuples()}


def test_methods_are_ranked_ties_share_a_rank_and_controls_have_none(board: Project) -> None:
    assert ranks_of() == {"Good": (1, 2), "Fair": (1, 2), "Bad": (3, 3)}
    said = table_of(CONFIG, "league", "leaderboard").markdown()
    assert re.search("Ones: 2 of 3 methods may be the best .8 seeds.: (Good, Fair|Fair, Good)", said)
    assert said.index("Good") < said.index("Bad") < said.index("Pooled") < said.index("| Guess")
    assert re.search(r"\| Guess +\| control +\| [^|]+\| – +\| – +\|", said), "random scores cost nothing"


def test_a_method_that_is_another_with_its_values_shares_its_rank(board: Project) -> None:
    """Bad is Fair at mu = 0 and Fair is always Good: with mu = 0 one method is ranked, with mu = 1 two are."""
    paper = league()
    paper["methods"]["Fair"]["twin"] = {"of": "Good"}
    paper["methods"]["Good"]["label"] = "Good & co"
    for mu, rank in ((0.0, 1), (1.0, 2)):
        paper["methods"]["Bad"] |= {"params": {"mu": mu}, "twin": {"of": "Fair", "when": {"mu": 0.0}}}
        board.save_paper("league", paper)
        fill(board, "league", CONFIG)
        assert ranks_of() == {"Good": (1, 1), "Fair": (1, 1), "Bad": (rank, rank)}
        shown = column(blocks()["Ones"])
        assert shown["Fair"] == "1 (is Good & co)" and shown["Bad"] == ("2" if mu else "1 (is Good & co)")
        said = [note for note in table_of(CONFIG, "league", "leaderboard").notes if note.startswith("Ones: ")]
        best = "Ones: 1 of 2 methods may be the best (8 seeds): Good & co."
        assert said == [best] * (mu == 1), "of one no tie is said"


@pytest.mark.parametrize(
    ("part", "wrong", "message"),
    [
        ("twin", {"of": "Fair"}, "earlier method 'Fair'"),  # its own name, and so any circle
        ("twin", {"of": "Good", "when": {"mu": 0.0}}, "twin.when: 'mu' is none of params"),
        ("within", {"Twos": 3}, "within says nothing of Ones"),
        ("to", {"Twos": 3}, "to says nothing of Ones"),
    ],
)
def test_a_twin_is_an_earlier_method_and_a_budget_is_fixed_for_each_dataset(
    project: Project, part: str, wrong: dict[str, Any], message: str
) -> None:
    paper = league()
    of = paper["methods"]["Fair"] if part == "twin" else paper["tables"]["leaderboard_bytes"]["board"]
    of[part] = wrong
    project.save_paper("league", paper)
    with pytest.raises(UserError, match=message):
        load_paper("league")


def test_few_seeds_tie_all_and_it_is_said(board: Project) -> None:
    two, three = (Config(scale="reduced", seeds=[*range(count)]) for count in (2, 3))
    said = "Ones: 2 seeds, too few to distinguish any two of 3 methods: all are tied."
    assert {*ranks_of(two).values()} == {(1, 3)}
    assert said in table_of(two, "league", "leaderboard").notes
    assert "too few to distinguish" not in table_of(three, "league", "leaderboard").markdown()


@pytest.mark.parametrize("planned", [True, False], ids=["not run", "not planned"])
def test_a_failed_cell_counts_as_random_scores_and_one_that_lacks_has_no_average(
    board: Project, planned: bool
) -> None:
    paper = league()
    if not planned:
        paper["methods"]["Fair"]["only"] = {"dataset": ["Ones"]}
    for cell in board.cells("league", "leaderboard", CONFIG):
        if planned and (cell.method, cell.dataset) == ("Fair", "Twos"):
            (board.root / cell.path).unlink()
    board.save_paper("league", paper)
    shown = blocks()
    assert column(shown["Twos"])["Bad"].endswith(" (as Guess)")
    assert column(shown["Twos"], 1)["Bad"].startswith("diverged")
    assert float(column(shown["Average"], 1)["Bad"]) == pytest.approx((0.8 + 0.5) / 2, abs=0.005)
    assert column(shown["Average"])["Fair"] == "–" and column(shown["Average"])["Good"] == "1"


def test_only_datasets_of_one_scale_are_averaged(board: Project) -> None:
    """Ones and Twos were shipped at scale reduced; then Twos runs at scale demo."""

    def headings(config: Config) -> list[str]:
        return [block.heading for block in blocks(config).values()]

    both = ["Average over Ones, Twos (reduced), test AUC", "Ones (reduced)", "Twos (reduced)"]
    assert headings(CONFIG) == both
    export_reproduced(Plan(CONFIG, "league"), "leaderboard")
    board.save_paper("league", {**league(), "scales": {"demo": {"datasets": ["Twos"]}}})
    demo = CONFIG.model_copy(update={"scale": "demo"})
    fill(board, "league", demo)
    assert headings(demo) == ["Ones (reduced)", "Twos (demo)"]
    assert headings(demo.model_copy(update={"datasets": ["Twos"]})) == ["Twos (demo)"], "as the call asks"
    drawing = figures.drawing_of(Plan(demo, "league"), "figure1")
    assert [panel.title for panel in drawing.content.panels] == ["Ones (reduced)"]
    assert "mean over 8 seeds" in drawing.words and "not run at this scale" not in drawing.words
    assert "is a reference result" in drawing.words


def test_a_budget_takes_the_last_evaluation_within_it_and_a_miss_is_infinite(board: Project) -> None:
    (block,) = blocks(name="leaderboard_bytes").values()
    values, needed = column(block, 1), column(block, 2)
    assert float(values["Fair"]) == pytest.approx(0.849, abs=0.005)  # of 200 sent, half are within 100
    assert float(values["Good"]) == 0.5, "its first evaluation after the start comes at 200"
    assert needed["Bad"] == "∞ (0/8 seeds)" and float(needed["Good"]) <= 400
    assert "within 100 numbers sent; target test AUC 0.85" in block.heading


def test_ones_own_method_is_ranked_among_shipped_rows_and_nothing_else_is_trained(board: Project) -> None:
    """Of another configuration what was shipped is trained too."""
    for name in ("leaderboard", "leaderboard_bytes"):
        export_reproduced(Plan(CONFIG, "league"), name)
    shutil.rmtree(board.root / "results")
    inherited = {"tables": {"leaderboard": {}, "leaderboard_bytes": {}}, "figures": {"figure1": {}}}
    mine = {"extends": "league", "title": "Mine", "methods": {"Mine": {"algorithm": "mine"}}, **inherited}
    board.save_paper("mine", mine)
    assert load_paper("mine").tables["leaderboard"].methods[-1] == "Mine"
    inputs = Inputs(CONFIG)
    asked = [inputs.of_table("mine", name) for name in ("leaderboard", "leaderboard_bytes")]
    for paths in (*asked, inputs.of_figure("mine", "figure1")):
        assert {Path(path).stem for path in paths} == {"Mine"}
    everything = Inputs(CONFIG.model_copy(update={"shipped": False}))
    assert len(everything.of_table("mine", "leaderboard")) == 2 * len(LEVELS)
    assert len(inputs.of_table("league", "leaderboard")) == 2 * (len(LEVELS) - 1), "its own are trained"

    fill(board, "mine", CONFIG, only="Mine")
    table = table_of(CONFIG, "mine", "leaderboard")
    assert "Mine on Ones: rank 3 of 4." in table.markdown()
    assert "on average: rank 3 of 4." in table.markdown()
    shown = table.rows.set_index(["dataset", "method"])["shipped"]
    assert not shown["Ones", "Mine"] and shown["Ones", "Good"] and shown["Twos", "Bad"]
    points = figures.drawing_of(Plan(CONFIG, "mine"), "figure1").points
    assert {"Good", "Fair", "Bad", "Mine", "Pareto front"} == set(points["curve"])
    assert points.query("curve == 'Pareto front'")["x"].tolist() == [200.0, 400.0]
    other = league()
    other["methods"]["Good"]["params"] = {"lr": 0.7}
    board.save_paper("league", other)
    assert {Path(path).stem for path in Inputs(CONFIG).of_table("mine", "leaderboard")} == {"Mine", "Good"}


def test_a_number_with_seeds_trained_here_is_not_said_to_be_shipped_alone() -> None:
    shipped, partly, ours = (
        Compared(shipped=True),
        Compared(shipped=True, trained=True),
        Compared(trained=True),
    )
    assert leaderboard._shipped([shipped, ours]).endswith(
        "1 of 2 numbers are reference results, not trained here."
    )
    said = leaderboard._shipped([shipped, partly, ours])
    assert said.endswith("2 of 3 numbers are reference results, 1 of them with seeds trained here.")
    assert leaderboard._shipped([ours]) == ""
