"""What the shipped papers print of their own claims, counted by hand in their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.plan.configuration import load_paper
from fedbench.report.numbers.prints import printed, printed_in
from fedbench.results.claims.judge import verdict
from fedbench.results.claims.question import Question

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("number", "won", "of"), [(5, 23, 26), (9, 4, 10)])
def test_a_place_reads_the_print_of_its_own_table(
    number: int, won: int, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table 1 of cycp states no Dirichlet level for ChestMNIST: its rows fit the places of Table 5 too."""
    monkeypatch.chdir(ROOT)
    paper = load_paper("cycp")
    asked = Question(paper.claims[number - 1], paper)
    numbers = printed(paper, [*paper.tables], [asked.metric])
    in_print = printed_in(numbers, asked.claim.targets, asked.metric)
    effects = asked.effects(in_print, asked.places)
    assert (verdict(effects.values, asked.rule).shown, len(effects.places)) == (won, of)
