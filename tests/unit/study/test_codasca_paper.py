"""The paper codasca as it is configured: what its cells share, and what each of them trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.tuned import read_tuned_file, tuned_path

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def cells(scale: str, target: str) -> list[Cell]:
    return Plan(configuration.load_config(overrides={"scale": scale}), "codasca").cells(target)


def test_npa_is_coda_plus_with_a_window_of_one_and_the_run_is_shared() -> None:
    for scale in ("demo", "reduced"):
        keys = {(c.method, c.setting["split"]): c.key for c in cells(scale, "table1") if c.setting["I"] == 1}
        for split in ("silos", "even"):
            assert keys["NPA", split] == keys["CODA+", split] != keys["CODASCA", split]


def test_all_windows_of_a_method_see_equally_many_samples() -> None:
    for scale, figure in (("reduced", "figureA2"), ("demo", "figureA3"), ("paper", "figure1")):
        for cell in cells(scale, figure):
            train = cell.runs[0].train
            assert train.iterations is not None and train.period is not None
            assert train.iterations % train.period == 0
            assert train.stage_every is None or train.stage_every % train.period == 0


def test_one_pre_training_serves_all_findings_and_numbers_of_sources() -> None:
    chosen = cells("paper", "table4")
    assert len(chosen) == 25
    starts = {run.start.run.key for cell in chosen for run in cell.runs if run.start and run.start.run}
    assert len(starts) == len(chosen[0].runs)  # one a seed
    first = chosen[0].runs[0]
    assert first.start is not None and first.start.drop_head and first.start.run is not None
    before = first.start.run
    assert before.method == "adam" and before.data.clients == 1 and before.data.labels.rule == "original"
    assert before.train.keep_model and before.train.epochs == 2 and before.params["lr"] == 1e-5
    assert len({cell.key for cell in chosen}) == 25
    by_sources = {c.setting["k_sources"]: c.runs[0] for c in chosen if c.setting["disease"] == "C1"}
    assert by_sources[3].data.datasets == ("chexpert_valid", "chestxray14", "padchest")
    assert by_sources[3].data.labels.positive == ("edema",) and by_sources[3].data.clients == 3
    assert all(run.params["proximal"] == 0.001 for run in by_sources.values())


def test_chestxray_ih_is_five_hospitals_and_keeps_all_samples() -> None:
    chosen = cells("paper", "table3")
    data = chosen[0].runs[0].data
    assert len(data.datasets) == 5 and data.partition.rule == "sites" and data.tests == "all"
    assert data.imbalance.rule == "none" and data.clients == 16
    assert {cell.runs[0].data.labels.positive for cell in chosen} == {
        ("cardiomegaly",), ("edema",), ("consolidation",), ("atelectasis",), ("effusion",),
    }  # fmt: skip


def test_each_window_has_the_steps_that_were_tuned_for_it() -> None:
    paper = configuration.load_paper("codasca")
    for cell in cells("reduced", "tableA1"):
        path = tuned_path(paper, cell.dataset, cell.setting)
        assert path.name == f"{cell.dataset}_I{cell.setting['I']}.yaml"
        chosen = read_tuned_file(path)["chosen"][cell.method]
        assert chosen.items() <= cell.runs[0].params.items()
