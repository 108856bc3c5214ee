"""What the rules ask of a call, and what a call says of its training, with a stand-in for Snakemake's objects."""

from __future__ import annotations

import atexit
import errno
import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedbench import files, sealed_json
from fedbench.commands.options import configured
from fedbench.data import prepared
from fedbench.study.cells import Cell
from fedbench.train import preflight
from fedbench.workflow import requests
from fedbench.workflow.rule_functions import ALL_CORES, RuleFunctions, options_of, or_exit
from fedbench.workflow.training import Training

pytestmark = pytest.mark.usefixtures("project")


class Group(list[Any]):
    """Jobs that run together."""

    def is_group(self) -> bool:
        return True


class Files(list[str]):
    """The inputs of a job, of which parts have names."""

    def __init__(self, files: Sequence[str] = (), **parts: list[str]) -> None:
        super().__init__(files)
        self.get = parts.get


class Job:
    """A job that trains a cell."""

    def __init__(self, cell: Cell) -> None:
        names = ("scale", "paper", "dataset", "setting", "method")
        self.wildcards = dict(zip(names, cell.path.with_suffix("").parts[2:], strict=True))
        self.rule, self.log = SimpleNamespace(name="train"), [f"{cell.method}.log"]
        self.output, self.input = [str(cell.path)], Files()
        self.is_shell, self.shellcmd = True, f"fedbench run {cell.name} > {self.log[0]}"

    def is_group(self) -> bool:
        return False


def workflow(jobs: Sequence[Any] = (), done: Sequence[Any] = (), cores: int | None = 4) -> Any:
    """Snakemake's object, with jobs of which some are done."""
    dag = SimpleNamespace(
        jobs=jobs, needrun=lambda job: True, finished=lambda job: job in done,
        needrun_jobs=lambda: iter([job for job in jobs if job not in done]),
    )  # fmt: skip
    scheduler = SimpleNamespace(running=[], failed=[])
    settings = SimpleNamespace(cores=cores)
    return SimpleNamespace(
        dag=dag,
        scheduler=scheduler,
        resource_settings=settings,
        config_settings=SimpleNamespace(config_args=None),
        dryrun=False,
        is_main_process=True,
    )


def test_a_mistake_ends_the_program_with_one_line() -> None:
    with pytest.raises(SystemExit, match=r"^error: unknown paper 'tyo'\. Did you mean 'toy'"):
        RuleFunctions(workflow(), {"paper": "tyo"})
    with pytest.raises(SystemExit, match=r"^error: mirror: gone does not exist"):
        RuleFunctions(workflow(), {"mirror": "gone"})

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SystemExit, match=r"^error: .*No space left"):
        or_exit(full)
    assert or_exit(max, 1, 2) == 2


def test_the_jobs_get_what_the_call_lays_over_the_file() -> None:
    Path("raw files").mkdir()
    call = RuleFunctions(
        workflow(), {"seeds": "3,4", "tolerance": 0.02, "scale": "paper", "mirror": "raw files"}
    )
    given = {"tolerance=0.02", 'mirror="raw files"', "seeds=[3, 4]"}
    words = shlex.split(options_of(call.config))
    assert {*words} == {"--set", *given} and len(words) == 6, "the scale is an option of its own"
    assert options_of(call.config.model_copy(update={"paper": "other"})) == call.options, (
        "and so is the paper"
    )
    assert call.mirror == "--mirror 'raw files'"
    assert RuleFunctions(workflow(), {}).options == "" == RuleFunctions(workflow(), {}).mirror


def test_a_cell_is_asked_for_unless_its_file_has_the_keys_of_its_runs() -> None:
    call = RuleFunctions(workflow(), {})
    missing, other, emptied, current, *_ = call.inputs.cells("toy", "table1")
    for cell in (other, emptied, current):
        cell.path.parent.mkdir(parents=True, exist_ok=True)
    sealed_json.write(other.path, {"key": "0" * 16, "runs": []})
    emptied.path.write_text("")
    sealed_json.write(current.path, {"key": current.key, "runs": []})
    asked = [call.cell_request(Job(cell).wildcards) for cell in (missing, other, emptied, current)]
    assert asked == [["results/requests/training/request.json"]] * 3 + [[]]
    assert call.cell_data(Job(current).wildcards) == call.inputs.of_cell(current)


def test_a_call_ends_with_the_cells_that_other_code_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", ending.append)
    call = RuleFunctions(workflow(), {})
    cell, current, *_ = call.inputs.cells("toy", "table1")
    for made, code in ((cell, "0" * 12), (current, None)):
        made.path.parent.mkdir(parents=True, exist_ok=True)
        runs = [{"seed": run.seed, "code": code} for run in made.runs]
        sealed_json.write(made.path, {"key": made.key, "runs": runs})
        call.cell_request(Job(made).wildcards)
    (end,) = ending
    end()
    said = capsys.readouterr().err
    assert f"{len(cell.runs)} runs of {cell.name};" in said and "forget --other-code" in said


def request(**given: Any) -> dict[str, Any]:
    """Return what a call asks for of the table, with the time."""
    path = RuleFunctions(workflow(), given).table_request(SimpleNamespace(paper="toy", table="table1"))
    content: dict[str, Any] = json.loads(Path(path).read_text())
    return content


def test_options_that_a_table_tells_of_make_it_again_and_others_do_not() -> None:
    shown = {"tolerance": 0.5, "seeds": [7], "datasets": ["Printed"], "scale": "paper", "constants": "paper"}
    silent = {"checkpoint_seconds": 1, "client_chunk": 2, "compile": True, "inputs": "host", "paper": "toy"}
    changed = set[str]()
    for key, value in (shown | silent).items():
        before = request()
        assert request() == before
        if request(**{key: value}) != before:
            changed.add(key)
    assert changed == {*shown}


@pytest.mark.parametrize(
    ("kind", "outputs"),
    [
        ("table", ["tables/toy/table1.csv", "tables/table1.tex"]),
        ("figure", ["figures/toy/figure1.svg", "figures/figure1.csv"]),
        ("claims", ["tables/toy/claims.md", "tables/claims.tex"]),
        ("page", ["report.html"]),
    ],
)
def test_an_output_that_was_emptied_is_asked_for_anew(kind: str, outputs: list[str]) -> None:
    def asked() -> str:
        ask = getattr(RuleFunctions(workflow(), {}), f"{kind}_request")
        path = ask(SimpleNamespace(paper="toy", table="table1", figure="figure1"))
        return str(json.loads(Path(path).read_text())["asked"])

    for output in map(Path, outputs):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("made")
        output.with_suffix(".json").write_text("made too")
    for output in map(Path, outputs):
        before = asked()
        assert asked() == before
        output.write_text("")
        assert asked() > before, output
        output.write_text("made")


def test_the_command_of_a_request_has_the_configuration_of_its_call() -> None:
    given = {"seeds": [3, 4], "tolerance": 0.02, "scale": "paper", "set": {"train.batch_size": 8}}
    request(**given)
    config = configured(None, None, None, requests.path_of("toy", "table1"))
    assert {key: getattr(config, key) for key in given} == given


def test_a_change_of_what_is_shown_is_a_new_request_and_the_same_content_is_not() -> None:
    tuned = Path("config/tuned/toy/Digits.yaml")
    tuned.parent.mkdir(parents=True)
    tuned.write_text("chosen: {}\n")
    before = request()
    tuned.write_text("chosen: {}\n")
    os.utime(tuned, (1, 1))
    assert request() == before
    tuned.write_text("chosen: {}  \n")
    os.utime(tuned, (1, 1))  # a copy that keeps an older date
    changed = request()
    assert changed["asked"] > before["asked"]
    tuned.unlink()
    assert request()["asked"] > changed["asked"]


@pytest.mark.parametrize(
    ("waiting", "cores", "share"), [(1, 4, 2), (3, 4, 1), (2, 4, 2), (1, None, 1), (1, 1, 1)]
)
def test_the_cells_that_are_left_share_the_cores(waiting: int, cores: int | None, share: int) -> None:
    cells = RuleFunctions(workflow(), {}).inputs.cells("toy", "table1")
    jobs = [Job(cell) for cell in cells[:waiting]]
    call = RuleFunctions(workflow(jobs, cores=cores), {})
    assert call.training_cores(jobs[0].wildcards) == share, "two seeds a cell"
    on_gpu = RuleFunctions(workflow(jobs, cores=cores), {"device": "cuda"})
    assert on_gpu.gpu == 1 == on_gpu.training_cores(jobs[0].wildcards)


@pytest.mark.parametrize(("device", "cards", "gpu"), [("auto", 1, 1), ("auto", 0, 0), ("cpu", 1, 0)])
def test_a_cell_takes_a_gpu_where_there_is_one(
    device: str, cards: int, gpu: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if cards:
        (tmp_path / "nvidia-smi").touch(0o755)
    assert RuleFunctions(workflow(), {"device": device}).gpu == gpu


@pytest.mark.parametrize("outdated", [True, False])
def test_a_dataset_whose_raw_files_have_changed_is_prepared_again(
    outdated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = RuleFunctions(workflow(), {"data_dir": "data"})
    monkeypatch.setattr(prepared, "outdated", lambda *_: outdated)
    summary = Path("data/prepared/digits.json")
    assert call.prepare_request(SimpleNamespace(dataset="digits")), "it is not there"
    summary.parent.mkdir(parents=True)
    summary.touch()
    asked = call.prepare_request(SimpleNamespace(dataset="digits"))
    assert asked == ["results/requests/training/request.json"] * outdated


def test_pictures_are_decoded_by_all_cores() -> None:
    cores = [
        RuleFunctions(workflow(), {}).decoding_cores(SimpleNamespace(dataset=name))
        for name in ("chestxray14", "digits")
    ]
    assert cores == [ALL_CORES, 1]


def test_a_dry_run_checks_each_cell_without_a_result_once(monkeypatch: pytest.MonkeyPatch) -> None:
    snakemake = workflow()
    snakemake.dryrun = True
    call, asked = RuleFunctions(snakemake, {}), list[list[str]]()
    monkeypatch.setattr(preflight, "check", lambda cells: asked.append([cell.name for cell in cells]))
    first, *others = call.inputs.cells("toy", "table1")
    first.path.parent.mkdir(parents=True)
    first.path.write_text("{}")
    for _ in range(2):
        shown = call.table_inputs(SimpleNamespace(paper="toy", table="table1"))
        assert shown == call.inputs.of_table("toy", "table1")
    assert asked == [[cell.name for cell in others]]


def test_what_is_trained_is_checked_before_and_explained_by_its_own_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (job, *_) = jobs = [Job(RuleFunctions(workflow(), {}).inputs.cells("toy", "table1")[0])]
    snakemake = workflow(jobs)
    call, asked, room = RuleFunctions(snakemake, {}), list[Cell](), list[Path]()
    monkeypatch.setattr(preflight, "check", asked.extend)
    monkeypatch.setattr(files, "check_room", room.append)
    Path(job.log[0]).write_text("of an earlier call")
    Path("results/runs").mkdir(parents=True)
    training = Training(snakemake, call)
    training.begin()
    training.tell_the_end()
    assert asked == [call.cell(job.wildcards)] and room == [Path(), Path("results"), Path("results/runs")]
    training.explain_failures()
    assert "not finished" not in capsys.readouterr().err
    Path(job.log[0]).write_text("of this call, and failed")
    training.explain_failures()
    assert f"not finished: {job.output[0]}\n    of this call, and failed" in capsys.readouterr().err


def test_a_table_is_built_all_the_same_if_one_of_the_results_it_shows_is_there() -> None:
    snakemake = workflow()
    (cell, *_) = RuleFunctions(snakemake, {}).inputs.cells("toy", "table1")
    job = Job(cell)
    job.rule, job.shellcmd = SimpleNamespace(name="table"), "touch built > table.log"
    job.input = Files(["code.py", "one.json"], shown=["one.json"])
    snakemake.dag.needrun_jobs = lambda: [job]
    training = Training(snakemake, RuleFunctions(snakemake, {}))
    Path("code.py").touch()
    training.explain_failures()
    assert not Path("built").exists()
    Path("one.json").touch()
    training.explain_failures()
    assert Path("built").exists()


def test_the_time_left_is_at_the_pace_since_the_first_progress_of_this_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs, now = [Job(cell) for cell in RuleFunctions(workflow(), {}).inputs.cells("toy", "table1")], [0.0]
    done = [jobs[0]]
    snakemake = workflow(jobs, done)
    snakemake.dag.needrun = lambda job: job is not jobs[1]  # its result is there
    monkeypatch.setattr(preflight, "check", lambda cells: None)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    training = Training(snakemake, RuleFunctions(snakemake, {}))
    training.begin()
    now[0] = 100.0  # most of it processes that start
    done += jobs[2:3]
    assert training.state() == ["cells: 3 of 6 done, 3 left"]
    done += jobs[3:4]
    snakemake.scheduler.failed, now[0] = {jobs[4]}, 110.0
    assert training.state() == ["cells: 4 of 6 done, 1 failed, 1 left, about 10 s left"]
    training.tell_the_end()


def test_the_state_counts_cells_and_those_of_a_group_apart() -> None:
    jobs = [Job(cell) for cell in RuleFunctions(workflow(), {}).inputs.cells("toy", "table1")]
    assert len(jobs) == 6
    snakemake = workflow(jobs, done=jobs[:2])
    training = Training(snakemake, RuleFunctions(snakemake, {}))
    snakemake.scheduler.running = [Group(jobs[2:4]), jobs[4]]
    snakemake.scheduler.failed = {jobs[5]}
    assert training.state() == ["cells: 2 of 6 done, 3 running, 1 failed"]
    other = workflow()
    assert Training(other, RuleFunctions(other, {})).state() == [], "nothing is said where nothing is trained"
