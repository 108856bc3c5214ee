"""The programs in examples/ come to the verdicts of fedbench, from the same files and without its code."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedbench.plan.configuration import load_config
from fedbench.plan.plan import Plan
from fedbench.report.numbers.compare import comparisons
from fedbench.report.numbers.findings import find

ROOT = Path(__file__).parents[3]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program by its name, run where the files are."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT / "examples")

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


@pytest.mark.parametrize(
    ("study", "scale"), [("localscgdam", "reduced"), ("localscgdam", "paper"), ("climb", "reduced")]
)
def test_every_verdict_beside_print(program: Any, study: str, scale: str) -> None:
    norm, said = program("verdicts").norm, program("verdicts").against_print(study, scale)
    plan = Plan(load_config(overrides={"scale": scale}), study)
    ours = {}
    for name, spec in plan.study.tables.items():
        if spec.published and spec.kind == "results" and not spec.pool:
            frame = comparisons(plan, spec, plan.cells(name))
            for item in frame[frame["difference"].notna() & (frame["scale"] == scale)].itertuples():
                place = tuple(norm(value) for _, value in item.place)
                ours[name, place, item.method, item.metric] = item.verdict
    assert said == ours and len(ours) > 10


def test_every_verdict_on_claims_that_compare_methods(program: Any) -> None:
    checked = 0
    for study in ("localscgdam", "climb", "codasca", "cycp", "fcsg"):
        said = program("claims").judge(study, "reduced")
        for finding in find(Plan(load_config(overrides={"scale": "reduced"}), study)):
            (at,) = (at for at in finding.scales if at.scale == "reduced")
            if finding.number in said and at.ran and not at.stand_in and not at.early:
                assert said[finding.number] == at.verdict.kind, (study, finding.number)
                checked += 1
    assert checked >= 10


def test_they_are_short() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        assert sum(bool(line.strip()) for line in path.read_text().splitlines()) < 100, path
