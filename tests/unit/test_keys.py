"""Keys of runs are for ever: a field that comes later must not change those of configurations without it.

``tests/golden/keys`` is the configuration of the two first papers as it was on 2026-11-22; it is never edited.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.spec import digest
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

FROZEN = Path(__file__).parents[1] / "golden" / "keys"


@pytest.mark.parametrize(
    ("paper", "scale", "count", "expected"),
    [
        ("climb", "demo", 336, "a40aa828080aa73b"),
        ("climb", "reduced", 336, "a29b766d5599b956"),
        ("climb", "paper", 816, "d5ea314d8a50cf95"),
        ("localscgdam", "demo", 96, "2dd025bbb64b39ae"),
        ("localscgdam", "reduced", 96, "a6f264107db39f7f"),
        ("localscgdam", "paper", 321, "c684465220c6427c"),
    ],
)
def test_the_keys_of_the_frozen_configuration_are_what_they_were(
    paper: str, scale: str, count: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").symlink_to(FROZEN)
    monkeypatch.chdir(tmp_path)
    config = load_config(overrides={"scale": scale})
    keys = [run.key for cell in Plan(config, paper).cells() for run in cell.runs]
    assert (len(keys), digest(keys)) == (count, expected)
