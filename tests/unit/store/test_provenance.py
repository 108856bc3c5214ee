"""Which commit a number is of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fedbench import __version__
from fedbench.store.provenance import GIVEN, commit_of, sources


def test_a_commit_is_marked_where_code_or_configuration_differ(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    assert commit_of(tmp_path) == f"v{__version__}-{sources()}", "no checkout"
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("src/code.py", "config/config.yaml", "config/tuned/toy/Digits.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    clean = commit_of(tmp_path)
    assert len(clean) == 12

    (tmp_path / "notes.txt").write_text("of no run")
    assert commit_of(tmp_path) == clean, "a note changes nothing that runs"

    for name in ("config/tuned/toy/Digits.yaml", "src/code.py", "src/new.py"):
        before = (tmp_path / name).read_text() if (tmp_path / name).exists() else None
        (tmp_path / name).write_text("b")
        assert commit_of(tmp_path) == clean + "+", name
        if before is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_text(before)


def test_a_copy_installed_inside_another_repository_has_not_its_commit(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "first", "--allow-empty"], check=True)
    (tmp_path / ".venv/lib").mkdir(parents=True)
    assert commit_of(tmp_path / ".venv/lib") == f"v{__version__}-{sources()}"


def test_a_clone_of_another_user_has_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "first", "--allow-empty"], check=True)
    known = commit_of(tmp_path)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    refused = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert "dubious ownership" in refused.stderr and commit_of(tmp_path) == known and len(known) == 12


def test_a_copy_without_git_is_told_from_one_with_other_code(tmp_path: Path) -> None:
    for name, code in {"a.py": "1", "deep/b.py": "2", "deep/b.yaml": "3"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    known = sources(tmp_path)
    assert len(known) == 12 and sources(tmp_path) == known
    (tmp_path / "deep/b.yaml").write_text("no code")
    (tmp_path / "deep/__pycache__").mkdir()
    (tmp_path / "deep/__pycache__/b.pyc").write_text("no source")
    assert sources(tmp_path) == known

    (tmp_path / "project").mkdir()
    (tmp_path / "project/prepare.py").write_text("in a wheel alone")
    assert sources(tmp_path) == known

    (tmp_path / "deep/b.py").write_text("4")
    assert sources(tmp_path) != known
    (tmp_path / "deep/b.py").write_text("2")
    assert sources(tmp_path) == known
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    assert sources(tmp_path) != known
    (tmp_path / "c.py").rename(tmp_path / "a.py")
    (tmp_path / "a.py").write_text("12")
    (tmp_path / "deep/b.py").write_text("")
    assert sources(tmp_path) != known


def test_a_copy_without_git_takes_a_commit_that_has_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GIVEN, f"b5e679404f58:{sources()}")
    assert commit_of(tmp_path) == "b5e679404f58"
    for other in ("b5e679404f58:0123456789ab", "b5e679404f58", f":{sources()}"):
        monkeypatch.setenv(GIVEN, other)
        assert commit_of(tmp_path) == f"v{__version__}-{sources()}", other
