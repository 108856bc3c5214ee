"""What rules ask of a call, with a stand-in for Snakemake; what it says of its training and of jobs that failed."""

from __future__ import annotations

import atexit
import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy import rewrite, write_yaml

from fedbench import files, sealed_json
from fedbench.commands.options import configured
from fedbench.errors import UserError
from fedbench.files import mark
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.workflow import requests, training
from fedbench.workflow.requests import Requests
from fedbench.workflow.rule_functions import ALL_CORES, RuleFunctions, options_of, or_exit
from fedbench.workflow.training import Training, build_from_what_is_there, check_disks, explain

pytestmark = pytest.mark.usefixtures("project")


class Group(list[Any]):
    """Jobs that run together."""

    def is_group(self) -> bool:
        return True


class Job:
    """A job that trains a cell."""

    def __init__(self, cell: Cell) -> None:
        names = ("scale", "paper", "dataset", "setting", "method")
        self.wildcards = dict(zip(names, cell.path.with_suffix("").parts[2:], strict=True))
        self.rule, self.log = SimpleNamespace(name="train"), [f"{cell.method}.log"]
        self.output, self.input = [str(cell.path)], dict[str, list[str]]()
        self.is_shell, self.shellcmd = True, f"fedbench run {cell.name} > {self.log[0]}"

    def is_group(self) -> bool:
        return False


def workflow(jobs: Sequence[Any] = (), done: Sequence[Any] = (), cores: int | None = 4) -> Any:
    """Snakemake's object, with jobs of which some are done."""
    dag = SimpleNamespace(
        jobs=jobs, needrun=lambda job: True, finished=lambda job: job in done,
        needrun_jobs=lambda: iter([job for job in jobs if job not in done]),
    )  # fmt: skip
    return SimpleNamespace(
        dag=dag, scheduler=SimpleNamespace(running=[], failed=[]), dryrun=False, is_main_process=True,
        resource_settings=SimpleNamespace(cores=cores), config_settings=SimpleNamespace(config_args=None),
    )  # fmt: skip


def call_of(snakemake: Any = None, **given: Any) -> RuleFunctions:
    """Return the answers of a call with these keys of the configuration."""
    return RuleFunctions(snakemake or workflow(), given)


def cells() -> list[Cell]:
    return call_of().inputs.cells("toy", "table1")


def test_the_jobs_get_what_the_call_lays_over_the_file() -> None:
    Path("raw files").mkdir()
    call = call_of(seeds="3,4", tolerance=0.02, scale="paper", mirror="raw files")
    words = shlex.split(options_of(call.config))
    assert {*words} == {"--set", "tolerance=0.02", 'mirror="raw files"', "seeds=[3, 4]"}
    assert len(words) == 6, "the scale is an option of its own"
    other = call.config.model_copy(update={"paper": "other"})
    assert options_of(other) == call.options, "and so is the paper"
    cores = [call.decoding_cores(SimpleNamespace(dataset=name)) for name in ("chestxray14", "digits")]
    assert cores == [ALL_CORES, 1], "pictures are decoded by all"
    assert call.mirror == "--mirror 'raw files'" and call_of().options == "" == call_of().mirror


@pytest.mark.parametrize(("main", "cores"), [(True, 2), (False, 1)])
def test_a_job_of_a_cluster_takes_the_core_that_was_asked_for(main: bool, cores: int) -> None:
    """Its process sees all cores of the node; SLURM refused a cell of two seeds that took two of them."""
    job, snakemake = Job(cells()[0]), workflow([Job(cells()[0])], cores=8)
    snakemake.is_main_process = main
    assert call_of(snakemake, seeds="0,1", device="cpu").training_cores(job.wildcards) == cores


def test_a_call_ends_with_the_cells_that_other_code_made_and_makes_what_shows_them_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those too that are trained with another seed: the mean will be of two methods."""
    better = {"method": "Plain", "than": "Proximal", "metric": "test_auc"}
    rewrite(claims=[{"says": "Good", "in": ["table1"], "better": better}])
    before = {rule: request(rule)["asked"] for rule in ("table", "figure", "claims")}
    ending: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", ending.append)
    monkeypatch.setattr(Store, "has", lambda store, key: True)
    call = call_of()
    cell, current, _, longer, *_ = call.inputs.cells("toy", "table1")
    for made, code, left in ((cell, "0" * 12, 0), (current, None, 0), (longer, "0" * 12, 1)):
        made.path.parent.mkdir(parents=True, exist_ok=True)
        runs = [{"seed": run.seed, "key": run.key, "code": code} for run in made.runs[left:]]
        sealed_json.write(made.path, {"key": made.key if not left else "other", "runs": runs})
        assert bool(call.cell_request(Job(made).wildcards)) == bool(left)
    (end,) = ending
    end()
    said = capsys.readouterr().err
    assert f"3 runs of {cell.name}, {longer.name};" in said and "forget --other-code" in said
    for rule, asked in before.items():
        assert request(rule)["asked"] != asked, rule


def request(rule: str = "table", **given: Any) -> dict[str, Any]:
    """Return what a call asks for of a rule's target, by default the table, with the time."""
    names = SimpleNamespace(paper="toy", table="table1", figure="figure1")
    path = getattr(call_of(**given), f"{rule}_request")(names)
    content: dict[str, Any] = json.loads(Path(path).read_text())
    return content


def test_options_that_a_table_tells_of_make_it_again_and_others_do_not() -> None:
    shown = {"tolerance": 0.5, "seeds": [7], "datasets": ["Printed"], "scale": "paper", "constants": "paper"}
    shown |= {"shipped": False, "set": {"train.batch_size": 8}}
    silent = {"checkpoint_seconds": 1, "client_chunk": 2, "compile": True, "inputs": "host", "paper": "toy"}
    changed = set[str]()
    for key, value in (shown | silent).items():
        before = request()
        assert request() == before
        if request(**{key: value}) != before:
            changed.add(key)
    assert changed == {*shown}


def test_the_command_of_a_request_has_the_configuration_of_its_call() -> None:
    given = {"seeds": [3, 4], "tolerance": 0.02, "scale": "paper", "set": {"train.batch_size": 8}}
    request(**given)
    config = configured(None, None, None, requests.path_of("toy", "table1"))
    assert {key: getattr(config, key) for key in given} == given
    with pytest.raises(UserError, match=r"none\.json is no request"):
        requests.config_of(Path("none.json"))


def test_a_change_of_what_is_shown_is_a_new_request_and_another_date_is_not() -> None:
    tuned, asked = Path("config/tuned/toy/Digits.yaml"), list[str]()
    write_yaml(tuned, {"chosen": {}})
    for content in (tuned.read_text(), tuned.read_text(), "chosen: {}  \n"):
        tuned.write_text(content)
        os.utime(tuned, (1, 1))  # a copy that keeps an older date
        asked.append(request()["asked"])
    assert asked[0] == asked[1] < asked[2]


def test_a_line_tells_how_the_training_stands_when_that_has_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells of a group count apart, and the pace is that since the first line."""
    jobs, now, done = [Job(cell) for cell in cells()], [50.0], list[Job]()
    snakemake = workflow(jobs, done)
    snakemake.dag.needrun = lambda job: job is not jobs[0]  # its result is there
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    followed = Training(snakemake, call_of(snakemake))

    def told() -> str:
        followed.tell()
        return capsys.readouterr().err

    snakemake.scheduler.running = [Group(jobs[1:3]), jobs[3]]
    assert told() == "cells: 1 of 6 done, 3 running, 2 left\n" and told() == ""
    done += jobs[1:3]
    now[0], snakemake.scheduler.running, snakemake.scheduler.failed = 70.0, [jobs[3]], {jobs[4]}
    assert told() == "cells: 3 of 6 done, 1 running, 1 failed, 1 left, about 20 s left\n"
    Training(workflow(), call_of()).tell()
    assert capsys.readouterr().err == "", "nothing is said where nothing is trained"


def test_one_that_is_anew_is_written_once_in_each_call_and_none_by_a_job() -> None:
    texts = list[str]()
    for call in (Requests(), Requests()):
        for _ in range(2):
            texts.append(Path(call.ask(("training",), {}, anew=True)).read_text())
    assert texts[0] == texts[1] != texts[2] == texts[3]
    assert not Path(Requests(frozen=True).ask(("toy", "table1"), {"config": 1})).exists()


def job(name: str, rule: str = "train", command: str = "false", *shown: str) -> training.Job:
    return training.Job(rule, f"{name}.json", f"{name}.log", f"{command} > {name}.log 2>&1 || exit 1", shown)


def test_only_logs_of_this_call_are_shown_with_their_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "tried"):
        Path(f"{name}.log").write_text("\n".join(f"{name} {i}" for i in range(20)))
    before = {"old.log": mark(Path("old.log")), "tried.log": None, "never.log": None}
    explain([job("tried", command="fedbench run 'a b'"), job("old"), job("never")], before)
    said = capsys.readouterr().err
    assert "not finished: tried.json" in said and "run it alone: fedbench run 'a b'\n" in said
    assert "tried 12" in said and "tried 11" not in said, "the last eight lines"
    assert "old" not in said and "never" not in said


def test_what_shows_results_is_built_from_those_there_are_tables_before_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.json").touch()
    jobs = [
        job("page", "page", "cp a.json 'of page.txt'", "of table.txt"),
        job("table", "table", "cp a.json 'of table.txt'", "a.json", "b.json"),
        job("none", "figure", "cp a.json 'of none.txt'", "b.json"),
        job("cell", "train", "cp a.json 'of cell.txt'", "a.json"),
        job("broken", "table", "cp gone.json out", "a.json"),
        job("quoted", "table", "cp a.json '$(touch bad);x'", "a.json"),
    ]
    build_from_what_is_there(jobs)
    made = sorted(path.name for path in Path().iterdir() if path.is_file())
    assert made == ["$(touch bad);x", "a.json", "of page.txt", "of table.txt"], "and no shell reads a command"
    said = capsys.readouterr().err
    assert "there: table.json" in said and "there: page.json" in said
    assert "broken.json" not in said, "what cannot be built is not called built"


def test_folders_that_are_not_there_yet_are_checked_where_they_will_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(files, "check_room", asked.append)
    Path("results").mkdir()
    check_disks(map(Path, ["results/cells/a/b.json", "results/cells/c.json", "logs/x.log"]))
    assert asked == [Path(), Path("results")]


def test_ctrl_c_before_the_first_job_is_one_line() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit, match=r"^stopped; the same command"):
        or_exit(stop)
