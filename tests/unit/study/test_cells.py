"""From configuration to cells: names, which cells a scale runs; what the shipped studies say of their cells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import PAPER, clinic_cells, rewrite, write_clinic

from fedbench import tasks
from fedbench.algorithms import make_method
from fedbench.commands.options import configured
from fedbench.errors import UserError
from fedbench.spec import RunSpec, TrainSpec
from fedbench.study import layers, plan
from fedbench.study.cells import Cell, matching, paper_of, resolve
from fedbench.study.configuration import load_config, load_paper, load_scale
from fedbench.study.plan import Plan


@pytest.mark.usefixtures("project")
def test_a_run_is_another_one_when_one_of_its_own_datasets_changes() -> None:
    def key(**data: Any) -> str:
        write_clinic("file: clinic.csv\nlabel: y\n", {}, data)
        key: str = clinic_cells()[0].runs[0].key
        return key

    rows = [f"{n},{n % 2}" for n in range(20)]
    for name in ("clinic", "other"):
        Path(f"{name}.csv").write_text("\n".join(["x,y", *rows]))
    Path("config/datasets").mkdir()
    Path("config/datasets/other.yaml").write_text("file: other.csv\nlabel: y\n")
    before, of_both = key(), key(sources=["other"])
    Path("other.csv").write_text("\n".join(["x,y", *rows, "20,0"]))
    assert key() == before != of_both != key(sources=["other"])


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("given", [{"data.partition": "even"}, {"data.sources": 5}, {"data.labels": 3}])
def test_a_part_of_the_wrong_kind_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(given)).partition(".")[2]):
        Plan(load_config(overrides={"set": given}), "toy").cells("table1")


def test_what_the_workflow_hands_on_is_read_as_it_was_written() -> None:
    assert layers.assigned('set={"params.lr": 1e-05}') == ("set", {"params.lr": 1e-5})
    assert layers.assigned("params.lr=yes") == ("params.lr", True)
    assert layers.assigned("params.lr=NaN") == ("params.lr", "NaN")
    for odd in ('a.b={"x": 1, "x": 2}', "a.b=" + "[" * 2_000):
        with pytest.raises(UserError, match="not valid YAML"):
            layers.assigned(odd)
    set_twice = ["set=train.iterations=5", "params.lr=0.1"]
    assert configured(None, None, set_twice).set == {"train.iterations": 5, "params.lr": 0.1}


@pytest.mark.usefixtures("project")
class TestToy:
    """Of a small paper with two datasets, one of them the paper's own."""

    def cells(self, target: str | None = "table1", **given: Any) -> list[Any]:
        return Plan(load_config(overrides=given), "toy").cells(target)

    def datasets(self, target: str = "table1", **given: Any) -> set[str]:
        return {cell.dataset for cell in self.cells(target, **given)}

    def test_names_paths_and_keys(self) -> None:
        chosen = self.cells()
        methods = ("Plain", "Proximal", "Plain_too")
        names = [f"toy/Digits/p{p}_imratio0.2/{method}" for p in (2, 4) for method in methods]
        assert [cell.name for cell in chosen] == names
        assert chosen[0].path == Path("results/cells/demo/toy/Digits/p2_imratio0.2/Plain.json")
        assert [run.seed for run in chosen[0].runs] == [0, 1]
        other = self.cells(seeds=[0, 2])
        assert chosen[0].key != other[0].key and chosen[0].runs[0].key == other[0].runs[0].key
        silent = {"device": "auto", "client_chunk": 2, "compile": True, "inputs": "host"}
        silent |= {"data_dir": "x", "mirror": "y", "tolerance": 0.5}
        assert [cell.key for cell in self.cells(**silent)] == [cell.key for cell in chosen]
        everything = [cell.name for cell in self.cells(None)]
        assert len(everything) == len({*everything}) == 6 + 1, "figure 1 adds p = 8"
        asked = Plan(load_config(), "toy")
        places = [("Digits", {"p": value, "imratio": 0.2}, "Plain") for value in (2, 2.0)]
        assert len({asked.cell(*place).name for place in places}) == 2, "equal, and written differently"

    def test_a_table_runs_its_own_datasets_and_our_additions(self) -> None:
        both = Plan(load_config(overrides={"datasets": "Printed,Digits"}), "toy")
        assert {cell.dataset for cell in both.cells("table1")} == {"Printed", "Digits"}
        alone = [both.command(cell).partition("--set ")[2] for cell in both.cells("table1")]
        assert {*alone} == {"'datasets=[\"Printed\"]'", "'datasets=[\"Digits\"]'"}
        assert {cell.dataset for cell in both.cells("figure1")} == {"Printed"}, "no stand-in needed"
        assert self.datasets("figure1") == {"Digits"}, "it stands in"

        more = {"data": {"dataset": "digits"}, "network": {"name": "mlp"}, "printed": False}
        with_more = {"datasets": lambda part: part.update({"More": more})}
        for additions, shown in (({"additions": ["More"]}, {"More"}), ({}, {"Digits", "More"})):
            rewrite(**with_more, tables=lambda part, more=additions: part["table1"].update(more))
            assert self.datasets(datasets=["Digits", "More"]) == shown
        rewrite(tables=lambda part: part["table1"].update({"additions": ["Mare"]}))
        with pytest.raises(UserError, match="table1: additions: unknown dataset 'Mare'"):
            load_paper("toy")

    def test_only_figures_have_a_stand_in_and_none_that_the_call_leaves_out(self) -> None:
        rewrite(
            datasets=lambda part: part.update({"Other": part["Digits"]}),
            tables=lambda part: part["table1"].update({"additions": []}),
        )
        assert self.datasets() == set() and self.datasets("figure1") == {"Digits"}
        assert self.datasets("figure1", datasets="Other") == set()

    def test_many_methods_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for named, said in ((3, "Plain, Proximal, Plain_too"), (2, "Plain, Proximal and 1 more")):
            monkeypatch.setattr(plan, "NAMED", named)
            assert plan.methods_by_dataset(self.cells()) == f"Digits: {said}"

    def test_what_is_unknown_is_named(self) -> None:
        with pytest.raises(UserError, match=r"table or figure of toy 'tabel1'\. Did you mean 'table1'"):
            self.cells("tabel1")
        with pytest.raises(UserError, match="unknown dataset of toy 'digits'"):
            self.cells(datasets="digits")

    @pytest.mark.parametrize(
        ("pattern", "methods"),
        [
            ("Pla", {"Plain", "Plain_too"}),
            ("Pla*", {"Plain", "Plain_too"}),
            ("*lain", {"Plain"}),
            ("*/Plain", {"Plain"}),
            ("Plain/", {"Plain"}),
            ("p2*P?o", {"Proximal"}),
            ("toy/", {"Plain", "Plain_too", "Proximal"}),
            ("toy/*", {"Plain", "Plain_too", "Proximal"}),
        ],
    )
    def test_a_pattern_matches_whole_names_or_else_a_part_of_them(
        self, pattern: str, methods: set[str]
    ) -> None:
        assert {cell.method for cell in matching(self.cells(), pattern)} == methods

    def test_parts_that_are_apart_in_a_name_are_joined_in_what_is_meant(self) -> None:
        """``Proximal`` alone would be that of the configured paper."""
        with pytest.raises(UserError, match=re.escape("Did you mean 'toy/*/Proximal'?")):
            matching(self.cells(), "toy/Proximal")
        assert {cell.method for cell in matching(self.cells(), "toy/*/Proximal")} == {"Proximal"}

    def test_a_method_that_nothing_shows_is_said_to_be_one(self) -> None:
        rewrite(methods=lambda methods: methods.update(Plane=PAPER["methods"]["Plain"]))
        says = r"no table or figure of toy shows Plane: .*papers/toy\.yaml"
        for pattern in ("Plane", "toy/Digits/p2_imratio0.2/Plane"):
            for whole_parts in (False, True):
                with pytest.raises(UserError, match=says):
                    matching(self.cells(), pattern, whole_parts)

    def test_a_method_that_the_scale_leaves_out_is_said_to_be_so(self) -> None:
        cells = [cell for cell in self.cells() if cell.method != "Proximal"]
        with pytest.raises(UserError, match="Proximal has no cell at scale demo"):
            matching(cells, "toy/*/Proximal")

    def test_a_pattern_names_its_paper_where_it_begins_with_one_and_more_follows(self) -> None:
        papers: dict[str, str | None] = {"toy/": "toy", "toy/*": "toy", "toy/*/Plain": "toy"}
        papers |= {"toi/Digits/p2/Plain": "toi"} | dict.fromkeys(("toy", "*/a/b/c", "Digits/p2/Plain", ""))
        assert {pattern: paper_of(pattern) for pattern in papers} == papers

    @pytest.mark.parametrize("kind", ["tables", "figures"])
    def test_a_table_or_figure_that_names_no_methods_has_all_and_one_of_data_none(self, kind: str) -> None:
        (target,) = PAPER[kind]
        rewrite(**{kind: lambda targets: targets[target].pop("methods")})
        assert {cell.method for cell in self.cells(target)} == {"Plain", "Proximal", "Plain_too"}
        about = {"title": "Data", "datasets": ["Digits"], "metrics": ["n_samples"], "rows": ["dataset"]}
        rewrite(tables={name: about | {"kind": name} for name in ("data", "facts")})
        assert self.cells("data") == self.cells("facts") == []


SCALES = ("demo", "reduced", "paper")


def cells(study: str, scale: str, target: str | None = None) -> list[Cell]:
    chosen = Plan(load_config(overrides={"scale": scale}), study).cells(target)
    assert chosen
    return chosen


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


def test_all_windows_of_codasca_see_equally_many_samples() -> None:
    for train in (cell.runs[0].train for cell in cells("codasca", "paper", "figure1")):
        assert train.iterations and train.period and train.iterations % train.period == 0
        assert train.stage_every is None or train.stage_every % train.period == 0


def test_npa_of_codasca_shares_the_run_of_coda_plus_with_a_window_of_one() -> None:
    shown = [cell for cell in cells("codasca", "reduced", "table1") if cell.setting["I"] == 1]
    keys = {(cell.method, cell.setting["split"]): cell.key for cell in shown}
    for split in ("silos", "even"):
        assert keys["NPA", split] == keys["CODA+", split] != keys["CODASCA", split]


def test_every_run_of_a_table_of_cycp_is_a_hundred_cycles_and_forty_at_scale_reduced() -> None:
    """Whatever the number of clients; groups have ten clients, all of whom take part."""
    ours = ("table1", "table2", "table3", "table8", "table9")
    for scale, cycles, tables in (("paper", 100, (*ours, "table4", "table5")), ("reduced", 40, ours)):
        for table in tables:
            for cell in cells("cycp", scale, table):
                run = cell.runs[0]
                groups, clients = run.train.participation.groups, run.train.participation.clients
                assert groups and clients == 10 and run.data.clients == 10 * groups
                assert run.train.known_rounds == cycles * groups and run.train.period == 32, cell.name
