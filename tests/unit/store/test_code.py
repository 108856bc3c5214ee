"""The digest of a run's code: what changes numbers counts, and layout does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fedbench.spec import RunSpec
from fedbench.store import code

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


def digest() -> str:
    """Return the digest of the files as they are now."""
    code._digest.cache_clear()
    code._read.cache_clear()
    return code._digest("local_scgdam", "classification", "mlp", "dirichlet")


def test_a_statement_more_is_other_code_in_what_a_run_imports_alone(library: Path) -> None:
    before, other = digest(), list[str]()
    for name in (*NEEDED, *OTHERS):
        text = (library / name).read_text()
        (library / name).write_text(text + "\nMORE = 1\n")
        if digest() != before:
            other.append(name)
        (library / name).write_text(text)
    assert other == [*NEEDED]


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


def test_of_a_run_that_records_no_code_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "digest_of", lambda run: "new")
    run: RunSpec = None  # type: ignore[assignment]
    assert [code.differs(run, recorded) for recorded in (None, "new", "old")] == [False, False, True]
    assert code.remark({"a": [False]}) == "" == code.remark({})
    assert "2 runs of a, b" in code.remark({"a": [True, False], "b": [True], "c": [False]})
