"""Cells that diverge or crash, processes that are killed, files that are damaged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

from projects import BIN, Project, jobs

METHOD = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"
CELL = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM.json"


def test_a_diverging_cell_is_a_result(built: Project) -> None:
    with built.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["params"]["lr"] = 1e30
    built.snakemake("tables/table1.tex")
    rows = built.table()
    assert (rows["LocalSGDM"]["status"], rows["LocalSGDAM"]["status"]) == ("diverged", "finished")
    assert "diverged" in (built.root / "tables/table1.md").read_text()
    assert "Nothing to be done" in built.snakemake("tables/table1.tex")


def test_a_crashing_cell_stops_no_other_and_stays_visible(project: Project) -> None:
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["train"] = {
            "participation": {"rule": "random", "clients": 2, "groups": 7}
        }
    said = project.snakemake("tables/table1.tex", fails=True)
    assert f"not finished: {CELL}" in said
    assert "no whole number of cycles" in said, "the last lines of the log"
    assert f"run it alone: fedbench run {METHOD} --scale tiny" in said
    rows = project.table()
    assert (rows["LocalSGDM"]["status"], rows["LocalSGDAM"]["status"]) == ("failed", "finished")
    assert "no whole number of cycles" in rows["LocalSGDM"]["reason"]
    for form in ("md", "tex"):
        said = (project.root / f"tables/table1.{form}").read_text()
        assert "Failed: Digits, LocalSGDM: " in said and "no whole number of cycles" in said

    assert jobs(project.snakemake("tables/table1.tex", fails=True)) == {}, (
        "what failed is tried again, nothing else"
    )
    with project.edit("config/papers/localscgdam.yaml") as paper:
        del paper["methods"]["LocalSGDM"]["train"]
    assert jobs(project.snakemake("tables/table1.tex")) == {"train": 1, "table": 1, "own_table": 1}
    assert project.table()["LocalSGDM"]["status"] == "finished"


def test_a_slip_in_what_is_to_be_trained_is_named_before_any_job(project: Project) -> None:
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["params"] = {"lr": 0.1, "momentun": 0.9}
    said = project.snakemake("tables/table1.tex", fails=True)
    place = "error: config/papers/localscgdam.yaml: methods.LocalSGDM: method 'local_sgdm': unknown hyper-parameter"
    assert f"{place} 'momentun'. Did you mean 'momentum'?" in said and "Traceback" not in said
    assert not (project.root / "data").exists() and not (project.root / "results").exists()


def test_a_killed_workflow_goes_on_from_the_checkpoint_to_the_same_bytes(built: Project) -> None:
    with built.edit("config/scales/tiny.yaml") as scale:
        scale["seeds"] = [0]
        scale["papers"]["localscgdam"]["train"]["iterations"] = 1600
    with built.edit("config/config.yaml") as config:
        config["checkpoint_seconds"] = 0
    alone = subprocess.Popen(
        [BIN / "snakemake", CELL, "--cores", "1"],
        cwd=built.root,
        env=built.environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 900
    while not list(built.root.glob("results/runs/*.unfinished/checkpoint.pt")):
        assert alone.poll() is None and time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.02)
    os.killpg(alone.pid, signal.SIGKILL)
    alone.wait()

    old = set(built.runs())
    built.snakemake(CELL, "--cores", "1")
    log = (built.root / f"logs/train/tiny/{METHOD}.log").read_text()
    first = re.search(r"round (\d+)/400", log)
    assert first and int(first[1]) > 1, "it began again instead of going on:\n" + log
    (key,) = set(built.runs()) - old
    resumed = built.curves()[key]
    assert not list(built.root.glob("results/runs/*.unfinished"))

    (built.root / CELL).unlink()
    (built.root / f"results/runs/{key}").rename(built.root / "set_aside")
    built.snakemake(CELL, "--cores", "1")
    assert built.curves()[key] == resumed


def test_a_damaged_prepared_file_is_named(project: Project) -> None:
    project.snakemake("data/prepared/digits.npz")
    path = project.root / "data/prepared/digits.npz"
    whole = path.read_bytes()
    path.write_bytes(bytes(len(whole)))
    said = project.snakemake("tables/table1.tex", fails=True)
    assert "data/prepared/digits.npz" in said and "python data_prep/prepare.py digits" in said
    assert "Traceback" not in said
