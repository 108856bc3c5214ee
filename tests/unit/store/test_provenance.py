"""Which commit a number is of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fedbench import __version__
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


def test_a_copy_installed_inside_another_repository_has_not_its_commit(clone: Path) -> None:
    (clone / ".venv/lib").mkdir(parents=True)
    assert commit_of(clone / ".venv/lib") == UNKNOWN


def test_a_clone_of_another_user_has_its_commit(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = commit_of(clone)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert "dubious ownership" in git(clone, "rev-parse", "HEAD")
    assert commit_of(clone) == known and len(known) == 12


def test_a_copy_without_git_is_told_from_one_with_other_code(tmp_path: Path) -> None:
    code = {"a.py": "1", "deep/b.py": "2"}
    write(tmp_path, code)
    known = sources(tmp_path)
    no_code = {"deep/b.yaml": "3", "deep/__pycache__/b.pyc": "4", "project/prepare.py": "in a wheel alone"}
    write(tmp_path, no_code)
    assert len(known) == 12 and sources(tmp_path) == known
    for changed in ({"deep/b.py": "4"}, {"a.py": "12", "deep/b.py": ""}, {"c.py": "1"}):
        write(tmp_path, changed)
        assert sources(tmp_path) != known, changed
        write(tmp_path, code)
    (tmp_path / "a.py").unlink()
    assert sources(tmp_path) != known, "the same code under another name"


def test_a_copy_without_git_takes_a_commit_that_has_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GIVEN, f"b5e679404f58:{sources()}")
    assert commit_of(tmp_path) == "b5e679404f58"
    for other in ("b5e679404f58:0123456789ab", "b5e679404f58", f":{sources()}"):
        monkeypatch.setenv(GIVEN, other)
        assert commit_of(tmp_path) == UNKNOWN, other
