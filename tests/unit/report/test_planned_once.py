"""Whatever reads the runs of a study plans it once: its YAML is checked once, and each cell is resolved once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_project import Project

from fedbench.report import claims, tables
from fedbench.report.page import build as page
from fedbench.study import plan as planning
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is planned: the studies that are read, the places that are resolved with which constants."""
    read, describe, calls = planning.load_paper, planning.described, list[str]()

    def counted_study(key: str) -> Any:
        calls.append(key)
        return read(key)

    def counted_cell(study: Any, scale: Any, *place: Any) -> Any:
        calls.append(repr((study.key, scale.name, scale.constants, place)))
        return describe(study, scale, *place)

    monkeypatch.setattr(planning, "load_paper", counted_study)
    monkeypatch.setattr(planning, "described", counted_cell)
    return calls


@pytest.mark.parametrize(
    "make",
    [
        lambda config: claims.claim_table(Plan(config)),
        lambda config: tables.table_of(Plan(config), "table1"),
        page.save_page,
    ],
    ids=["claims", "tables", "page"],
)
def test_each_cell_is_resolved_once(
    project: Project, reduced: Config, asked: list[str], make: Callable[[Config], object]
) -> None:
    """At all scales, and with published constants instead of tuned ones for the method that has some."""
    project.change(methods={"CoDA": {"params": {"lr": 0.1}, "published": ["lr"]}})
    project.fill("localscgdam", "table1", reduced)
    Path("config/config.yaml").write_text("scale: reduced\n")
    asked.clear()
    make(reduced)
    assert len(asked) == len(set(asked)) > 10 and "localscgdam" in asked
