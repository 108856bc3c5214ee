"""``fedbench store``: what it prints and how it ends."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml
from typer.testing import CliRunner, Result

from fedbench.commands.cli import app
from fedbench.data import files
from fedbench.data.files import read_json
from fedbench.spec import RunSpec
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study import cells, configuration
from fedbench.study.plan import Plan

CELL = "toy/Digits/p2_imratio0.2/Plain"


def call(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["store", *arguments])
    assert result.exit_code == status, result.output
    assert not status or (result.stderr.startswith("error: ") and result.stderr.count("\n") == 1)
    return result


def finish(run: RunSpec) -> None:
    with Store().claim(run.key):
        made = {"commit": "abc", "versions": {}, "hardware": "a card", "device": "cuda"}
        record = Record(run.key, run.model_dump(mode="json"), "finished", "", {"test_auc": 0.5}, made, {})
        Store().finish(record, [{"round": 0}])


@pytest.fixture
def keys(project: Path) -> list[str]:
    """Give the store both runs of a cell, a run nobody asks for, and one that was begun; return the keys."""
    store, planned = Store(), Plan(configuration.load_config(), "toy").cells()
    (cell,) = cells.matching(planned, CELL)
    (other,) = cells.matching(planned, CELL.replace("Plain", "Proximal"))
    unasked = cell.runs[0].model_copy(update={"params": {"lr": 9.0}, "seed": 7})
    for run in (*cell.runs, unasked):
        finish(run)
    with store.claim(other.runs[0].key) as folder:
        (folder / "checkpoint.pt").touch()
    return [run.key for run in (*cell.runs, unasked, other.runs[0])]


def test_list_names_the_runs_by_their_cells(keys: list[str]) -> None:
    begun = f"{keys[3]}  unfinished  demo/toy/Digits/p2_imratio0.2/Proximal/seed0"
    finished = [f"{keys[seed]}  finished    demo/{CELL}/seed{seed}" for seed in (0, 1)]
    lines = sorted([*finished, f"{keys[2]}  finished    -/digits/fedavg/seed7"])
    end = "3 runs, 1 unfinished, in results/runs"
    assert call("list").stdout.splitlines() == [*lines, begun, end]
    with Store().claim(keys[3]):
        assert f"{keys[3]}  training " in call("list").stdout
    patterns = {"Plain/seed1": [1], "demo/*/seed?": [0, 1, 3], "nothing": [], keys[0][:12]: [0]}
    for pattern, chosen in patterns.items():
        listed = call("list", pattern).stdout.splitlines()[:-1]
        assert {line.split()[0] for line in listed} == {keys[place] for place in chosen}, pattern


@pytest.mark.parametrize("given", [{}, {"datasets": ["Printed"]}, {"seeds": [5, 11]}])
def test_runs_of_other_datasets_and_seeds_than_the_scales_own_are_named(
    project: Path, given: dict[str, Any]
) -> None:
    """Those of stand-ins in figures too."""
    config = configuration.load_config(overrides=given)
    asked = Plan(config, "toy").cells()
    for run in (run for cell in asked for run in cell.runs):
        finish(run)
    listed = call("list").stdout.splitlines()
    wanted = {f"{config.scale}/{cell.name}/seed{run.seed}" for cell in asked for run in cell.runs}
    assert {line.split()[2] for line in listed[:-1]} == wanted
    exported = call("export", str(project / "x.tar.gz"), f"{config.scale}/toy").stdout
    assert exported.startswith(f"{len(wanted)} runs in")


@pytest.mark.parametrize("mistake", ["title: half written\nmethods: [", "extends: nobody\n", "moved data"])
def test_another_papers_mistake_is_one_warning(
    keys: list[str], mistake: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if mistake == "moved data":
        write_yaml(Path("config/datasets/gone.yaml"), {"file": "my/gone.csv", "label": "y"})
        gone = {"printed": False, "data": {"dataset": "gone"}, "network": {"name": "mlp"}}
        datasets = {"Gone": gone, **PAPER["datasets"]}
        write_yaml(Path("config/papers/draft.yaml"), {**PAPER, "datasets": datasets})
    else:
        Path("config/papers/draft.yaml").write_text(mistake)
    for command in (["verify"], ["export", str(tmp_path / "x.tar.gz"), "demo/toy"], ["list"]):
        caplog.clear()
        result = call(*command)
        (said,) = caplog.messages
        assert "paper draft" in said and "\n" not in said
    assert f"{keys[0]}  finished    demo/{CELL}/seed0" in result.stdout.splitlines()


def test_verify_names_what_is_damaged_and_moves_it_aside_on_request(keys: list[str]) -> None:
    said = call("verify").stdout
    assert re.fullmatch(r"3 runs are intact, 0 damaged\n\d+ files of data are intact\n", said)
    (Store().path(keys[1]) / "curve.csv").write_text("torn")
    (Store().path(keys[2]) / "run.json").unlink()
    result = call("verify", status=2)
    assert f"{keys[1]}  damaged: curve.csv is not what was written (demo/{CELL}/seed1)" in result.stdout
    assert f"{keys[2]}  damaged: run.json is missing" in result.stdout
    assert "1 runs are intact, 2 damaged" in result.stdout
    assert keys[1] in result.stderr and "--set-aside" in result.stderr
    assert "damaged (curve.csv" in call("list").stdout

    assert f"kept as results/runs/{keys[1]}.damaged1" in call("verify", "--set-aside").stdout
    assert Store().keys() == [keys[0]] and call("verify", "*eed*").stdout == "1 runs are intact, 0 damaged\n"


def test_verify_reads_prepared_data_whatever_a_stamp_says(
    keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGE", 0)
    data_dir = Path(shutil.copytree(configuration.load_config().data_dir, "copy"))
    config = configuration.load_config().model_copy(update={"data_dir": str(data_dir)})
    monkeypatch.setattr(configuration, "load_config", lambda: config)
    path = data_dir / "prepared/digits/x_train.npy"
    sha = read_json(data_dir / "prepared/digits.json", "")["arrays"]["x_train"]
    content = path.read_bytes()
    path.write_bytes(content[:-100] + b"x" + content[-99:])
    files._stamp(path, files._state(path), sha)
    assert files.intact(path, sha)  # a disk that lost a bit changes no time
    said = call("verify").stdout
    assert f"{path} is damaged and will be made again: it is not what was written\n" in said
    files._digest.cache_clear()
    assert not files.intact(path, sha)


def test_runs_go_to_another_project_and_into_its_cells(
    keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, other, source = tmp_path / "runs.tar.gz", tmp_path / "other", tmp_path / "source"
    assert call("export", str(archive), CELL).stdout.startswith(f"2 runs in {archive} (")
    shutil.copytree("config", other / "config")
    shutil.copytree("results/runs", source)
    (source / keys[2] / "curve.csv").write_text("torn")
    monkeypatch.chdir(other)
    assert f"{archive}: 2 new runs, 0 here already\n" in call("import", str(archive)).stdout
    assert CliRunner().invoke(app, ["list", CELL]).stdout == f"{CELL}  2/2 runs, not tuned\n"
    done = CliRunner().invoke(app, ["run", CELL])  # no data are here: nothing is trained
    assert done.exit_code == 0 and not Path("data").exists()
    assert Path("results/cells/demo", CELL).with_suffix(".json").exists()
    result = call("import", str(source), status=2)
    assert f"{source}: 0 new runs, 2 here already, 1 refused" in result.stdout
    assert f"{keys[2]}: refused, curve.csv is not what was written" in result.stdout
    assert result.stderr.startswith("error: 1 things were refused")
    for command in (["export", "x.tar.gz", "nothing"], ["verify", "nothing"]):
        assert "no run matches 'nothing'" in call(*command, status=2).stderr
    for key in keys[:2]:
        shutil.rmtree(source / key)
    assert "The next" in result.stdout and "The next" not in call("import", str(source), status=2).stdout
    assert "gone.tar.gz does not exist" in call("import", "gone.tar.gz", status=2).stderr


def test_a_store_is_read_without_a_configuration(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree("config")
    monkeypatch.setattr(configuration, "paper_keys", lambda: ["check"])  # of those that are installed
    assert f"{keys[0]}  finished    -/digits/fedavg/seed0" in call("list").stdout
