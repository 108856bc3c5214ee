"""What the shipped papers print of their own claims, counted by hand in their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench.plan.configuration import load_paper
from fedbench.report.numbers.prints import printed, printed_in
from fedbench.results.claims.effects import effects, rule_of
from fedbench.results.claims.judge import verdict
from fedbench.results.places import places_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("number", "won", "of"), [(5, 23, 26), (9, 4, 10)])
def test_a_place_reads_the_print_of_its_own_table(
    number: int, won: int, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table 1 of cycp states no Dirichlet level for ChestMNIST: its rows fit the places of Table 5 too."""
    monkeypatch.chdir(ROOT)
    paper = load_paper("cycp")
    claim = paper.claims[number - 1]
    measure, places = paper.measure(claim.metric), places_of(paper, claim.targets)
    numbers = printed(paper, [*paper.tables], [claim.metric])
    found = effects(claim, measure, places, [], printed_in(numbers, claim.targets, claim.metric))
    assert (verdict(found.values, rule_of(claim, measure)).shown, len(found.places)) == (won, of)
