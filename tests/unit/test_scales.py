"""The scales as they are shipped: what their descriptions say, under the tables of every paper, is what they run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedbench.configuration import load_scale

CONFIG = Path(__file__).parents[2] / "config"
LENGTHS = re.compile(r"(\w+): (\d+) (iterations|rounds)")


@pytest.mark.parametrize("name", ["demo", "reduced"])
def test_the_description_tells_the_length_of_each_papers_training(name: str) -> None:
    scale = load_scale(name, CONFIG)
    told = {paper: {unit: int(number)} for paper, number, unit in LENGTHS.findall(scale.description)}
    lengths = {
        key: {unit: plan.train[unit] for unit in ("iterations", "rounds") if unit in plan.train}
        for key, plan in scale.papers.items()
    }
    assert told == lengths
