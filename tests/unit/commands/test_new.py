"""``fedbench new``: what it writes passes at once, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedbench.commands import new
from fedbench.commands.cli import app
from fedbench.data.datasets import own
from fedbench.errors import UserError
from forks import stand_ins

ROOT = Path(__file__).parents[3]
LONG = "a_method_whose_name_is_as_long_as_they_get"


def python(root: Path, *arguments: str | Path) -> str:
    """Run a Python program in a clone, whose own fedbench is what it imports; return what it said."""
    done = subprocess.run(
        [stand_ins() / "python", *arguments], cwd=root, env={**os.environ, "PYTHONPATH": str(root / "src")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which a method, a task and a dataset were begun, each once with a short and once with a long name."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "src", root / "src")
    shutil.copy(ROOT / "pyproject.toml", root)
    program = "import sys; from fedbench.commands import new; [new.write(*a.split()) for a in sys.argv[1:]]"
    named = [f"{kind} {name}" for kind in new.KINDS for name in (kind[0], LONG)]
    python(root, "-c", program, *named)
    return root


def test_skeletons_pass_their_own_tests(clone: Path) -> None:
    short = [path for path in clone.glob("tests/**/test_*.py") if LONG not in path.name]
    said = python(clone, "-m", "pytest", "-p", "no:cacheprovider", *short)
    assert "8 passed" in said  # three tests of the method and the task, two of the dataset


def test_skeletons_are_lint_clean_whatever_their_name(clone: Path) -> None:
    written = [path for path in clone.rglob("*.py") if path.stem.removeprefix("test_") in written_names()]
    assert len(written) == 12
    for check in (["check"], ["format", "--check"]):
        command = [Path(sys.executable).parent / "ruff", *check, "--no-cache", *written]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def written_names() -> set[str]:
    short = {"m", "t", "d", LONG}
    tests = {"method_m", "task_t", "dataset_d", f"method_{LONG}", f"task_{LONG}", f"dataset_{LONG}"}
    return short | tests


def test_nothing_of_the_template_is_left(clone: Path) -> None:
    text = (clone / f"src/fedbench/algorithms/{LONG}.py").read_text()
    assert "example" not in text.lower() and "AMethodWhoseNameIsAsLongAsTheyGet (authors" in text


def test_what_is_there_is_not_overwritten(clone: Path) -> None:
    test = clone / "tests/unit/algorithms/test_method_other.py"
    test.write_text("mine")
    program = "from fedbench.commands import new; new.write('method', 'other')"
    with pytest.raises(AssertionError, match=r"test_method_other\.py exists; nothing was written"):
        python(clone, "-c", program)
    assert test.read_text() == "mine" and not (clone / "src/fedbench/algorithms/other.py").exists()
    test.unlink()


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("metod", "x", "unknown kind 'metod'. Did you mean 'method'"),
        ("method", "MyMethod", "small letters, digits and _, a letter first, e.g. my_method"),
        ("method", "my-method", "e.g. my_method"),
        ("dataset", "../x", "cannot be the name of a dataset"),
        ("method", "class", "cannot be the name of a method"),
        ("method", "3rd", "a letter first"),
        ("method", "_base", "a letter first, e.g. base"),
        ("method", "größe", "cannot be the name of a method"),
        ("method", "", "cannot be the name of a method"),
        ("method", "fedavg", "there is a method 'fedavg' already"),
        ("method", "localsgdm", "there is a method 'local_sgdm'; 'localsgdm' is easily confused with it"),
        ("dataset", "digits", "there is a dataset 'digits' already"),
    ],
)
def test_bad_and_taken_names_are_refused(kind: str, name: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        new.write(kind, name)
    assert says in str(caught.value)


def test_the_name_of_a_dataset_without_code_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own.FOLDER.mkdir(parents=True)
    (own.FOLDER / "cancer.yaml").write_text("file: x.csv\nlabel: y\n")
    with pytest.raises(UserError, match="there is a dataset 'cancer' already"):
        new.write("dataset", "cancer")


def test_elsewhere_than_in_the_installed_clone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "method", "mine"])
    assert result.exit_code == 2 and "is not the fedbench that is installed" in result.stderr
    assert "make setup" in result.stderr and not list(tmp_path.iterdir())
