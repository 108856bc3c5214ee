"""The artifact of a table: with the zip alone an evaluator recomputes its verdicts and trains a cell again."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from forks import stand_ins
from projects import ROOT

AUTHOR = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def call(folder: Path, *command: str, fails: bool = False, **environment: str) -> str:
    """Run a command in a folder; without the variables that lead to another copy of fedbench."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GIT_DIR")}
    done = subprocess.run(
        command, cwd=folder, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def fedbench(clone: Path, *arguments: str, fails: bool = False) -> str:
    return call(clone, str(stand_ins() / "fedbench"), *arguments, fails=fails, PYTHONPATH=str(clone / "src"))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a repository with a scale of its own, at which one cell of Table 1 has been trained."""
    root = tmp_path_factory.mktemp("clone")
    listed = call(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in listed.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/pictures")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    tiny = {"datasets": ["Digits"], "train": {"epochs": None, "iterations": 12, "evaluations": 3}}
    scale = {"description": "", "seeds": [0, 1], "papers": {"localscgdam": tiny}}
    (root / "config/scales/tiny.yaml").write_text(yaml.safe_dump(scale))
    for private in ("my/patients.csv", "config/datasets/patients.yaml"):
        (root / private).parent.mkdir(exist_ok=True)
        (root / private).write_text("file: my/patients.csv\nlabel: ill\n")
    call(root, "git", "init", "--quiet")
    call(root, "git", "add", "--force", ".")
    call(root, "git", "commit", "--quiet", "--message", "all", **AUTHOR)
    fedbench(root, "run", "localscgdam/Digits/p4_imratio0.1/LocalSGDM", "--scale", "tiny")
    return root


@pytest.fixture(scope="module")
def archive(clone: Path) -> Path:
    said = fedbench(clone, "artifact", "localscgdam/table1", "--scale", "tiny")
    assert said.strip() == "artifacts/localscgdam-table1-tiny.zip"
    return clone / said.strip()


@pytest.fixture
def received(archive: Path, tmp_path: Path) -> Path:
    """An empty folder into which the zip was unpacked."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    return tmp_path


def commands(folder: Path, block: int) -> list[str]:
    """The commands of a block of the README, which a reader types one after another."""
    return re.findall(r"```bash\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[block].splitlines()


def recompute(folder: Path, fails: bool = False) -> str:
    """Type what the README says to recompute the verdicts, with this Python for the one that it makes."""
    *made, enter, check = commands(folder, 0)
    assert made[0] == "python3 -m venv check" and made[1].startswith(
        "check/bin/python -m pip install numpy=="
    )
    assert enter == "cd code"
    words = shlex.split(check)
    assert words[0] == "../check/bin/python"
    return call(folder / "code", sys.executable, *words[1:], fails=fails)


def test_an_evaluator_recomputes_the_verdicts_of_this_study_alone(clone: Path, received: Path) -> None:
    said, code = recompute(received).strip(), received / "code"
    assert re.fullmatch(r"1\d of 1\d verdicts agree", said), "the shipped ones of FashionMNIST"
    assert f"It says: `{said}`" in (received / "README.md").read_text()

    assert [path.name for path in (code / "config/papers").iterdir()] == ["localscgdam.yaml"]
    assert {path.name for path in (code / "published").iterdir()} == {"localscgdam", "index.csv"}
    assert {path.stem for path in (code / "reproduced").rglob("*.csv")} == {"localscgdam"}
    assert not (code / "my").exists() and not (code / "config/datasets/patients.yaml").exists()

    fedbench(clone, "table", "localscgdam/table1", "--scale", "tiny")
    for form in ("csv", "tex", "md", "json", "macros.tex"):
        path = f"tables/localscgdam/table1.{form}"
        assert (code / path).read_bytes() == (clone / path).read_bytes(), form
    exported = pd.read_csv(code / "reproduced/tiny/localscgdam.csv")
    assert {*exported.method} == {"LocalSGDM"} and not (clone / "reproduced/tiny").exists()


def test_a_run_that_was_changed_gives_another_verdict(received: Path) -> None:
    for path in (received / "code/reproduced").glob("*/localscgdam.csv"):
        runs = pd.read_csv(path, dtype=str, keep_default_na=False)
        at = (runs.method == "CoDA") & (runs.metric == "test_auc") & (runs.p == "8") & (runs.imratio == "0.1")
        runs.loc[at, "value"] = [str(float(value) - 0.2) for value in runs.loc[at, "value"]]
        runs.to_csv(path, index=False)
    said = recompute(received, fails=True)
    # whatever the shipped runs gave
    assert "('FashionMNIST', 8.0, 0.1) CoDA test_auc: below published, not " in said


def test_an_evaluator_trains_a_cell_again(received: Path) -> None:
    code = received / "code"
    setup, away, train, _ = commands(received, 1)
    assert setup == "make setup"
    curves = {path.parent.name: path.read_bytes() for path in (code / "results/runs").glob("*/curve.csv")}
    call(code, *shlex.split(away))
    words = shlex.split(train)
    assert words[0] == ".venv/bin/fedbench"
    said = fedbench(code, *words[1:])
    (expected,) = re.findall(r"The first says (`.*`);", (received / "README.md").read_text())
    finished, score = re.findall(r"`(.*?)`", expected)
    (line,) = [line for line in said.splitlines() if finished in line]
    assert score in line and score.startswith("test_auc 0.")
    (again,) = (code / "results/runs").glob("*/curve.csv")
    assert again.read_bytes() == curves[again.parent.name], "one run, and its curve has the same bytes"


def test_the_same_inputs_give_the_same_bytes_and_one_seed_is_trained_of_several(
    clone: Path, archive: Path, tmp_path: Path
) -> None:
    before, table = archive.read_bytes(), ("artifact", "localscgdam/table1", "--scale", "tiny")
    fedbench(clone, *table)
    assert archive.read_bytes() == before
    fedbench(clone, *table, "--set", "seeds=0,1")
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    archive.write_bytes(before)
    train = shlex.split(commands(tmp_path, 1)[2])
    assert train[-2:] in (["--set", "seeds=0"], ["--set", "seeds=1"]), "of several the last one counts"


def test_what_cannot_be_archived_is_told(clone: Path) -> None:
    for target, words in (
        ("localscgdam/table9", "unknown table"),
        ("arena/leaderboard", "has no runs at scale tiny: nothing to archive"),
    ):
        assert words in fedbench(clone, "artifact", target, "--scale", "tiny", fails=True)
    changed = clone / "config/scales/tiny.yaml"
    before = changed.read_text()
    changed.write_text(before + "# a remark\n")
    said = fedbench(clone, "artifact", "localscgdam/table1", "--scale", "tiny", fails=True)
    changed.write_text(before)
    assert "commit src/ and config/" in said
    curve = next(clone.glob("results/runs/*/curve.csv"))
    rows = curve.read_bytes()
    curve.write_bytes(rows[:-1])
    said = fedbench(clone, "artifact", "localscgdam/table1", "--scale", "tiny", fails=True)
    curve.write_bytes(rows)
    assert f"{curve.parent.name} is damaged (curve.csv is not what was written)" in said
