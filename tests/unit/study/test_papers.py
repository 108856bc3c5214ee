"""The shipped studies as they are configured: what papers and their programs say that no key of a run can."""

from __future__ import annotations

import numpy as np
import pytest

from fedbench import tasks
from fedbench.algorithms import make_method
from fedbench.spec import RunSpec, TrainSpec
from fedbench.study.cells import Cell, resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan

SCALES = ("demo", "reduced", "paper")


def cells(study: str, scale: str, target: str | None = None) -> list[Cell]:
    return Plan(load_config(overrides={"scale": scale}), study).cells(target)


@pytest.mark.parametrize("dataset", load_paper("arena").datasets)
@pytest.mark.parametrize("scale", SCALES)
def test_methods_of_arena_share_partitions_batches_and_schedule(dataset: str, scale: str) -> None:
    paper = load_paper("arena")
    entered = [name for name, method in paper.methods.items() if method.has({"dataset": dataset})]
    runs = {name: resolve(paper, load_scale(scale), dataset, {}, name, tuned={}) for name in entered}
    first, pooled = runs["FedAvg"], runs.pop("Pooled")
    for name, run in runs.items():
        train = run.train.model_copy(update={"prior": first.train.prior})  # of the min-max loss alone
        assert (run.network, run.data, train) == (first.network, first.data, first.train), name
    full = first.train.participation.clients or first.data.clients
    assert pooled.network == first.network and pooled.data.imbalance == first.data.imbalance
    assert pooled.data.clients == 1 and pooled.train.iterations == first.train.iterations
    assert pooled.train.batch_size == full * (first.train.batch_size or 0)


def test_each_method_of_climb_has_the_rounds_and_clients_of_the_authors_script() -> None:
    """run_ICLR2022.sh, lines 4-33."""
    runs = {
        (cell.setting["horizon"], cell.method): cell.runs[0] for cell in cells("climb", "paper", "tableA5")
    }
    short, long = (100, 5000), (500, 1000)
    mixture = {"Baseline": short, "CLIMB": short, "Ratio-Loss": long, "Focal-Loss": long}
    for method, (clients, rounds) in mixture.items():
        run, equal = runs["authors", method], runs["scale", method]
        assert (run.data.clients, run.train.rounds) == (clients, rounds)
        assert run.train.participation.clients == (100 if clients == 500 else None)
        assert (equal.data.clients, equal.train.rounds) == (100, 1000)
        assert run.params == equal.params and run.data.imbalance == equal.data.imbalance


def test_one_pre_training_of_codasca_serves_all_findings_and_numbers_of_sources() -> None:
    chosen = cells("codasca", "paper", "table4")
    starts = {run.start.run.key for cell in chosen for run in cell.runs if run.start and run.start.run}
    assert len(starts) == len(chosen[0].runs) and len({cell.key for cell in chosen}) == 25
    first = chosen[0].runs[0]
    assert first.start is not None and first.start.drop_head and first.start.run is not None
    before = first.start.run
    assert before.method == "adam" and before.data.clients == 1 and before.params["lr"] == 1e-5
    assert before.data.labels.rule == "original" and before.train.epochs == 2
    by_sources = {c.setting["k_sources"]: c.runs[0] for c in chosen if c.setting["disease"] == "C1"}
    assert by_sources[3].data.datasets == ("chexpert_valid", "chestxray14", "padchest")
    assert by_sources[3].data.labels.positive == ("edema",) and by_sources[3].data.clients == 3


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_of_cycp_is_a_whole_number_of_cycles_at_scale_paper_one_for_each_epoch(scale: str) -> None:
    tables = ("table1", "table2", "table3", "table4", "table5", "table8", "table9")
    of_100 = {cell.name for table in tables for cell in cells("cycp", "paper", table)}
    for cell in cells("cycp", scale):
        train = cell.runs[0].train
        assert train.iterations and train.period and train.participation.groups
        cycles, rest = divmod(train.iterations, train.period * train.participation.groups)
        assert rest == 0, cell.name
        assert cycles == 100 or scale != "paper" or cell.name not in of_100, cell.name
        train.participation.check(cell.runs[0].data.clients)


@pytest.mark.parametrize("scale", SCALES)
def test_methods_of_cycp_differ_in_what_they_are_alone(scale: str) -> None:
    """The same data, rounds, steps and numbers of clients for all; RS draws at random, CyCp by group."""
    shared = ("iterations", "period", "batch_size", "evaluations", "select", "augment", "normalize")
    firsts, chosen = dict[str, RunSpec](), cells("cycp", scale, "table1")
    for cell in chosen:
        mine = cell.runs[0]
        first = firsts.setdefault(cell.dataset, mine)
        assert mine.data == first.data and mine.network == first.network
        assert all(getattr(mine.train, name) == getattr(first.train, name) for name in shared)
        who, others = mine.train.participation, first.train.participation
        assert who.rule == ("random" if cell.method.startswith("RS") else "cyclic")
        assert (who.clients, who.groups) == (others.clients, others.groups)
    if scale == "paper":
        by_method = {cell.method: cell.runs[0] for cell in reversed(chosen)}
        rs, cycp = by_method["RS-Pairwise"], by_method["CyCp-Pairwise"]
        assert {name for name in rs.params if rs.params[name] != cycp.params[name]} == {"pool"}
        fields = TrainSpec.model_fields
        differing = [name for name in fields if getattr(rs.train, name) != getattr(cycp.train, name)]
        assert differing == ["participation"]


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_of_fcsg_has_a_task_that_its_method_takes(scale: str) -> None:
    kinds = {"ILR": "invariant", "ILR-norm": "invariant", "Omniglot": "maml", "Sinusoids": "sinusoids"}
    for cell in cells("fcsg", scale):
        run, plain = cell.runs[0], cell.method in ("FedAvg", "CODASCA")
        wanted = "more_positives" if plain else kinds.get(cell.dataset, "average_precision")
        assert run.task is not None and run.task.name == wanted
        method, task = make_method(run.method, run.params), tasks.make_task(run.task)
        tasks.check_fit(method, task, run.method, run.task)


@pytest.mark.parametrize(
    ("method", "slopes"),
    [
        ("FCSG", (-1 / 2, None, 1 / 4, 1 / 2)),
        ("FCSG-M", (-1 / 2, -1 / 2, 1 / 4, 1 / 2)),
        ("Acc-FCSG-M", (-1 / 3, -2 / 3, 1 / 3, 2 / 3)),
    ],
)
def test_budgets_of_fcsg_follow_the_theory(method: str, slopes: tuple[float | None, ...]) -> None:
    """Slopes over T of alpha, beta, q and m."""
    shown = [cell.runs[0] for cell in cells("fcsg", "paper", "table1") if cell.method == method]
    runs = [run for run in shown if (run.train.iterations or 0) >= 1024]
    values = [
        [run.params["lr"] for run in runs],
        [run.params.get("beta", 1.0) for run in runs],
        [run.train.period for run in runs],
        [run.task.options["copies"] for run in runs if run.task],
    ]
    log_t = np.log([run.train.iterations or 1 for run in runs])
    assert len(runs) == 4
    for value, slope in zip(values, slopes, strict=True):
        if slope is not None:
            fitted = np.polyfit(log_t, np.log(np.array(value, float)), 1)[0]
            assert fitted == pytest.approx(slope, abs=0.02)
