"""The reference of the study `check` is what the shipped runs of its cells give."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.report import tables
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

ROOT = Path(__file__).parents[3]


def test_the_reference_is_mean_and_deviation_of_the_shipped_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rows = tables.make(Plan(load_config(), "check"), "table1").rows
    assert rows["n_seeds"].tolist() == [10] * 3 and rows["shipped"].all()
    for ours, printed in (("mean", "published_mean"), ("std", "published_std")):
        assert rows[ours].tolist() == pytest.approx(rows[printed].astype(float).tolist(), abs=5e-5)
    assert rows["verdict"].tolist() == ["matches"] * 3, "by Welch's interval over two times ten seeds"
