"""What papers and their programs say of runs, which nothing else holds."""

from __future__ import annotations

from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan


def cells(study: str, target: str, scale: str = "paper") -> list[Cell]:
    chosen = Plan(load_config(overrides={"scale": scale}), study).cells(target)
    assert chosen
    return chosen


def test_each_method_of_climb_has_the_rounds_and_clients_of_the_authors_script() -> None:
    """run_ICLR2022.sh, lines 4-33."""
    runs = {(cell.setting["horizon"], cell.method): cell.runs[0] for cell in cells("climb", "tableA5")}
    short, long = (100, 5000), (500, 1000)
    mixture = {"Baseline": short, "CLIMB": short, "Ratio-Loss": long, "Focal-Loss": long}
    for method, (clients, rounds) in mixture.items():
        run, equal = runs["authors", method], runs["scale", method]
        assert (run.data.clients, run.train.rounds) == (clients, rounds)
        assert run.train.participation.clients == (100 if clients == 500 else None)
        assert (equal.data.clients, equal.train.rounds) == (100, 1000)
        assert run.params == equal.params and run.data.imbalance == equal.data.imbalance


def test_all_windows_of_codasca_see_equally_many_samples() -> None:
    for train in (cell.runs[0].train for cell in cells("codasca", "figure1")):
        assert train.iterations and train.period and train.iterations % train.period == 0
        assert train.stage_every is None or train.stage_every % train.period == 0


def test_npa_of_codasca_shares_the_run_of_coda_plus_with_a_window_of_one() -> None:
    shown = [cell for cell in cells("codasca", "table1", "reduced") if cell.setting["I"] == 1]
    keys = {(cell.method, cell.setting["split"]): cell.key for cell in shown}
    for split in ("silos", "even"):
        assert keys["NPA", split] == keys["CODA+", split] != keys["CODASCA", split]


def test_every_run_of_a_table_of_cycp_is_a_hundred_cycles_and_forty_at_scale_reduced() -> None:
    """Whatever the number of clients; groups have ten clients, all of whom take part."""
    ours = ("table1", "table2", "table3", "table8", "table9")
    for scale, cycles, tables in (("paper", 100, (*ours, "table4", "table5")), ("reduced", 40, ours)):
        for table in tables:
            for cell in cells("cycp", table, scale):
                run = cell.runs[0]
                groups, clients = run.train.participation.groups, run.train.participation.clients
                assert groups and clients == 10 and run.data.clients == 10 * groups
                assert run.train.known_rounds == cycles * groups and run.train.period == 32, cell.name
