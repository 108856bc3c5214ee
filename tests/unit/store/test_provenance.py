"""Which commit and which code a number is of: what changes numbers counts, and layout does not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fedbench import __version__
from fedbench.store import code
from fedbench.store.provenance import GIVEN, commit_of, sources

UNKNOWN = f"v{__version__}-{sources()}"


def git(folder: Path, *command: str) -> str:
    """Call git in a folder; return what it said, mistakes included."""
    who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    done = subprocess.run(["git", "-C", folder, *who, *command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with code, configuration and one commit."""
    git(tmp_path, "init", "-q")
    write(tmp_path, {"src/code.py": "a", "config/tuned/toy/Digits.yaml": "a"})
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_commit_is_marked_where_code_or_configuration_differ(clone: Path) -> None:
    clean = commit_of(clone)
    assert len(clean) == 12 and git(clone, "rev-parse", "HEAD").startswith(clean)
    write(clone, {"notes.txt": "of no run"})
    assert commit_of(clone) == clean, "a note changes nothing that runs"
    for name in ("config/tuned/toy/Digits.yaml", "src/code.py", "src/new.py"):
        write(clone, {name: "b"})
        assert commit_of(clone) == clean + "+", name
        git(clone, "checkout", "-q", ".")
        git(clone, "clean", "-fdq", "src")


def test_a_clone_of_another_user_has_its_commit_and_a_copy_installed_inside_has_not(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = commit_of(clone)
    (clone / ".venv/lib").mkdir(parents=True)
    assert commit_of(clone / ".venv/lib") == UNKNOWN
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert "dubious ownership" in git(clone, "rev-parse", "HEAD")
    assert commit_of(clone) == known and len(known) == 12


def test_a_copy_without_git_is_told_from_one_with_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a.py": "1", "deep/b.py": "2"}
    write(tmp_path, files)
    known = sources(tmp_path)
    no_code = {"deep/b.yaml": "3", "deep/__pycache__/b.pyc": "4", "project/prepare.py": "in a wheel alone"}
    write(tmp_path, no_code)
    assert len(known) == 12 and sources(tmp_path) == known
    for changed in ({"deep/b.py": "4"}, {"a.py": "12", "deep/b.py": ""}, {"c.py": "1"}):
        write(tmp_path, changed)
        assert sources(tmp_path) != known, changed
        write(tmp_path, files)
    (tmp_path / "a.py").unlink()
    assert sources(tmp_path) != known, "the same code under another name"
    for given, commit in ((f"b5e679404f58:{sources()}", "b5e679404f58"), ("b5e679404f58:0123456789ab", UNKNOWN),
                          ("b5e679404f58", UNKNOWN), (f":{sources()}", UNKNOWN)):  # fmt: skip
        monkeypatch.setenv(GIVEN, given)
        assert commit_of(tmp_path) == commit, "one that has its sources"


NEEDED = (
    "algorithms/local_scgdam.py", "algorithms/_minimax.py", "objectives/auc_compositional.py", "objectives/metrics.py",
    "tasks/classification.py", "models/mlp.py", "data/partitions/dirichlet.py", "data/partition.py",
    "engine/loop.py", "net/network.py",
)  # fmt: skip
OTHERS = ("algorithms/fedavg.py", "models/resnet20.py", "data/prepared.py", "study/plan.py")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the library that is not imported, only read."""
    shutil.copytree(code.LIBRARY, tmp_path / "fedbench", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "LIBRARY", tmp_path / "fedbench")
    return tmp_path / "fedbench"


def digest(method: str = "local_scgdam", task: str = "classification") -> str:
    code._digest.cache_clear()
    code._read.cache_clear()
    return code._digest(method, task, "mlp", "dirichlet")


def test_a_statement_more_is_other_code_in_what_a_run_imports_alone(library: Path) -> None:
    before, other = digest(), list[str]()
    for name in (*NEEDED, *OTHERS):
        text = (library / name).read_text()
        (library / name).write_text(text + "\nMORE = 1\n")
        if digest() != before:
            other.append(name)
        (library / name).write_text(text)
    assert other == [*NEEDED]


def test_what_prepares_data_does_not_count_though_a_task_names_a_dataset(library: Path) -> None:
    before = digest(task="sinusoids")
    for name in ("data/datasets/_generated.py", "data/custom/class_labels.py"):
        with (library / name).open("a") as file:
            file.write("\nMORE = 1\n")
    assert digest(task="sinusoids") == before


def test_comments_docstrings_and_layout_do_not_count(library: Path) -> None:
    path = library / "objectives/auc_compositional.py"
    path.write_text("VALUE = max(1, 2)\n\n\ndef of(x):\n    return x + VALUE\n")
    before = digest()
    path.write_text(
        '"""Words."""\nVALUE = max(\n    1, 2\n)  # why\ndef of(x):\n    """M."""\n    return (x + VALUE)\n'
    )
    assert digest() == before
    path.write_text("VALUE = max(1, 2)\n\n\ndef of(x):\n    return x - VALUE\n")
    assert digest() != before


IMPORTS = (
    "from ._helper import value", "from . import _helper", "from {package} import _helper",
    "import {package}._helper as helper", "def late():\n    from {package}._helper import value",
)  # fmt: skip


@pytest.mark.parametrize("statement", IMPORTS)
@pytest.mark.parametrize("package", ["fedbench.algorithms", "own_methods"])
def test_what_a_method_imports_counts_however_it_says_so(
    statement: str, package: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is imported: a report has no time for PyTorch."""
    of = {"METADATA": "Metadata-Version: 2.1\nName: own\nVersion: 1\n"}
    of["entry_points.txt"] = "[fedbench.algorithms]\nmine = own_methods.mine:Method\n"
    write(tmp_path / "own-1.dist-info", of)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = library / "algorithms" if package.startswith("fedbench.") else tmp_path / package
    digests = list[str]()
    for value in (1, 2):
        text = f"{statement.format(package=package)}\nimport numpy as np\n1 / 0\n"
        write(folder, {"__init__.py": "1 / 0\n", "_helper.py": f"value = {value}\n", "mine.py": text})
        digests.append(digest("mine"))
    assert digests[0] != digests[1]


def test_of_an_import_beyond_its_package_nothing_is_said(library: Path) -> None:
    write(library, {"algorithms/mine.py": "from .... import value\n"})
    assert digest("mine") != digest("fedavg"), "training says what is wrong"
