"""Training of cells on a real (tiny) dataset: store, resumption, divergence, results on disk."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import fedbench
from fedbench.engine.evaluator import Evaluator
from fedbench.engine.execution import Execution, Progress
from fedbench.engine.loop import AUTO
from fedbench.engine.simulate import Simulation
from fedbench.errors import UserError, WriteError
from fedbench.results.run_facts import class_counts, run_facts
from fedbench.spec import DataSpec, RunSpec
from fedbench.store import cell_files, runs
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.cells import Cell
from fedbench.study.layers import merged
from fedbench.study.plan import Plan
from fedbench.study.schema import Config
from fedbench.train import training
from fedbench.train.training import choose_device, load_arrays, train_cell, train_run

pytestmark = pytest.mark.usefixtures("project")


def config(**options: Any) -> Config:
    return configuration.load_config(overrides=options)


def cell() -> Cell:
    return Plan(config(), "toy").cell("Digits", {"p": 4, "imratio": 0.2}, "Plain")


def run_of(**changes: Any) -> RunSpec:
    """The first run of the cell, with other values of some keys."""
    return RunSpec.model_validate(merged(cell().runs[0].model_dump(exclude_none=True), changes))


def never(self: Simulation) -> None:
    raise AssertionError("a finished run was trained again")


def test_a_run_is_trained_once_and_recorded_with_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, store = run_of(train={"evaluations": 8, "period": 1}), Store()
    torch.set_num_threads(2)
    record = train_run(spec, config(), store)
    assert torch.get_num_threads() == 1, "processes share the cores"
    assert record.status == "finished" and record.reason == "" and record.key == spec.key
    assert record.spec == spec.model_dump(mode="json")
    assert record.metrics["iteration"] == 8 and 0 <= (record.metrics["test_auc"] or -1) <= 1
    of_times = {"seconds", "evaluation_seconds", "curve_seconds"}
    assert {"commit", "versions", "hardware", "device", "data", *of_times} <= record.provenance.keys()
    assert record.provenance["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    curve = pd.read_csv(store.path(spec.key) / "curve.csv")
    counts = class_counts(spec, Path(config().data_dir))
    assert len(curve) == 9 and record.facts == run_facts(record.metrics, curve, spec.train, counts)
    assert record.facts["test_auc"].keys() == {"pace"} and counts["test"], "what tables read off a curve"
    monkeypatch.setattr(Simulation, "run", never)
    store.checkpoint(spec.key).parent.mkdir()  # a process was killed before it cleaned up
    assert train_run(spec, config(), store) == record and store.unfinished() == []


def test_on_a_full_disk_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Simulation, "run", never)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"cannot write the folder .*\.unfinished"):
        train_run(run_of(), config(), Store())


@pytest.mark.parametrize("chunk", [2, None])
def test_it_is_prepared_and_trained_as_the_call_says(
    chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, prepare = list[str | None](), training.prepare

    def prepared(name: str, data_dir: str, mirror: str | None = None) -> None:
        asked.append(mirror)
        prepare(name, data_dir)

    def simulation(spec: RunSpec, arrays: Any, device: Any, how: Execution, start: Any) -> None:
        raise UserError(f"{how.chunk} {how.inputs}")

    monkeypatch.setattr(training, "prepare", prepared)
    monkeypatch.setattr(training, "simulation_of", simulation)
    given = config(client_chunk=chunk, inputs="host", mirror="https://here.example")
    with pytest.raises(UserError, match=f"^{AUTO if chunk is None else chunk} host$"):
        train_run(run_of(), given, Store())
    assert asked == ["https://here.example"]


def test_data_that_go_while_it_trains_lose_no_run(tmp_path: Path, prepared_digits: Path) -> None:
    shutil.copytree(prepared_digits, tmp_path / "data")
    spec, store = run_of(), Store()
    wanted = json.loads((tmp_path / "data/prepared/digits.json").read_text())["sha256"]

    def tidy(progress: Progress) -> None:
        shutil.rmtree(tmp_path / "data", ignore_errors=True)

    record = train_run(spec, config(data_dir=str(tmp_path / "data")), store, tidy)
    assert store.load(spec.key) == record and record.provenance["data"] == wanted


def test_two_that_want_one_run_train_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits for the first, which removes the folder that both have claimed."""
    spec, trained, run, waits = run_of(), list[str](), Simulation.run, threading.Event()

    def slow(self: Simulation) -> Any:
        trained.append(self.spec.key)
        assert waits.wait(60)
        return run(self)

    monkeypatch.setattr(runs, "_tell_waiting", lambda *given: waits.set())
    monkeypatch.setattr(Simulation, "run", slow)
    with ThreadPoolExecutor(2) as pool:
        records = [*pool.map(lambda _: train_run(spec, config(), Store()), range(2))]
    assert records[0] == records[1] and trained == Store().keys() == [spec.key]


@pytest.mark.parametrize("metric", [float("inf"), np.float64("nan")])
def test_the_record_is_plain_json(metric: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluator, "metrics", lambda *given, **named: {"test_auc": metric, "val_auc": 1})
    train_run(run_of(), config(), Store())
    text = (Store().path(run_of().key) / "run.json").read_text()
    loaded = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert loaded["metrics"]["test_auc"] is None and loaded["metrics"]["val_auc"] == 1.0


def test_the_result_of_a_cell_names_the_run_of_each_seed_and_lies_at_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen, seen = cell(), list[tuple[int, int]]()
    first, second = train_cell(
        chosen, config(), Store(), lambda seed, progress: seen.append((seed, progress.round))
    )
    assert seen == [(0, 1), (0, 2), (1, 1), (1, 2)]
    path = Path("results/cells/demo/toy/Digits/p4_imratio0.2/Plain.json")
    result = json.loads(path.read_text())
    assert chosen.path == path and cell_files.state_of(path)[0] == result["key"] == chosen.key
    assert result["setting"] == {"p": 4, "imratio": 0.2}
    assert cell_files.keys(path) == {run.seed: run.key for run in chosen.runs}
    assert first.metrics != second.metrics and "metrics" not in path.read_text()
    before = path.read_bytes()
    monkeypatch.setattr(Simulation, "run", never)
    train_cell(chosen, config(), Store())
    assert path.read_bytes() == before


def test_a_diverged_seed_is_a_result_and_the_others_go_on() -> None:
    runs = [run_of(params={"lr": 1e30}), cell().runs[1]]
    first, second = train_cell(cell().model_copy(update={"runs": runs}), config(), Store())
    assert (first.status, second.status) == ("diverged", "finished")
    assert "non-finite" in first.reason and second.reason == ""


def test_arrays_follow_the_partition(prepared_digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of the test part alone count too, as of tasks that are tested on classes which they have not seen."""
    spec, load = run_of(), training.load_partition
    arrays = load_arrays(spec, prepared_digits)
    used = np.concatenate(arrays.clients)
    assert len(arrays.clients) == 3 and len(set(used.tolist())) == len(used)
    assert set(arrays.y_train[used]) == {0, 1} and arrays.n_classes == 2
    assert arrays.y_train[used].mean() == pytest.approx(0.2, abs=0.01)
    assert 0.4 < arrays.y_test.mean() < 0.6  # the test part stays as it is

    def later(*given: Any) -> Any:
        partition = load(*given)
        return dataclasses.replace(partition, y_test=partition.y_test + 10)

    monkeypatch.setattr(training, "load_partition", later)
    several = spec.model_copy(update={"data": DataSpec(dataset="digits", clients=3)})
    assert load_arrays(several, prepared_digits).n_classes == 20


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == choose_device("cpu").type == "cpu"
    with pytest.raises(UserError, match="device=auto or device=cpu"):
        choose_device("cuda")
    with pytest.raises(UserError, match="tf32 needs a GPU"):
        training.own_device("cpu", "tf32")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [choose_device(wanted).type for wanted in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


def test_a_gpu_is_reserved_before_pytorch_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(training.gpus, "take", lambda: asked.append("take"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(asked.append("is_available")))
    training.own_device("auto")
    assert asked == ["take", "is_available"]
    monkeypatch.setattr(training.gpus, "installed", lambda: ["GPU-1"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert training.gpus.wanted("auto") and training.gpus.wanted("cuda") and not training.gpus.wanted("cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not training.gpus.wanted("auto"), "hidden"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert not training.gpus.wanted("auto"), "a PyTorch for processors alone"
    asked.clear()
    training.own_device("auto")
    assert asked == ["is_available"]


def test_a_card_computes_in_full_precision_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    for name, value in (("deterministic", False), ("benchmark", True), ("allow_tf32", True)):
        monkeypatch.setattr(cudnn, name, value)
    monkeypatch.setattr(training.gpus, "take", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for precision in ("float32", "tf32", "float32"):  # the runs of one process
        assert training.own_device("auto", precision).type == "cuda"
        assert cudnn.deterministic and not cudnn.benchmark
        assert cudnn.allow_tf32 == matmul.allow_tf32 == (precision == "tf32")


def test_a_run_is_made_by_the_code_that_began_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever lies on the disk when it ends, and when another process goes on."""
    spec, store, code = run_of(), Store(), ["before"]
    monkeypatch.setattr(training, "digest_of", lambda spec: code[0])

    def edited(progress: Progress) -> None:
        code[0] = "after"
        if progress.round == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train_run(spec, config(checkpoint_seconds=0), store, edited)
    record = train_run(spec, config(), store)
    assert record.provenance["code"] == "before" and "other code began this run" in capsys.readouterr().out
    monkeypatch.setattr(training, "digest_of", lambda spec: code[0])
    code[0] = "before"
    other = train_run(run_of(seed=7), config(), store, lambda progress: code.__setitem__(0, "after"))
    assert other.provenance["code"] == "before"


def test_the_result_of_a_run_that_diverged_before_its_first_evaluation_has_no_curve() -> None:
    changed = {"params.lr": 1e30, "train.reference": "local"}
    result = fedbench.run(cell().name, paper="toy", set=changed)
    assert {*result.runs["status"]} == {"diverged"} and result.curve.empty
