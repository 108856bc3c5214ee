"""What was asked of each paper is logged: a claim that is changed without a line there is found."""

from __future__ import annotations

import datetime

import pytest

from fedbench.plan.claim_log import Logged, asked_differently_until, read_log
from fedbench.plan.configuration import load_paper

PAPERS = ["climb", "codasca", "cycp", "fcsg", "localscgdam"]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_claims_are_the_last_forms_of_the_log(paper: str) -> None:
    log = [one for one in read_log() if one.paper == paper]
    last = {one.digest for one in log} - {one.replaces for one in log}
    claims = {claim.digest: claim.says for claim in load_paper(paper).claims}
    assert claims.keys() == last, [says for digest, says in claims.items() if digest not in last]


def test_the_log_is_whole() -> None:
    """Each form once, dated, with a reason, after the form that it replaces."""
    log = read_log()
    forms = {(first.paper, first.digest): first for first in log}
    assert len(forms) == len(log) and {first.paper for first in log} == {*PAPERS}
    for first in log:
        assert first.reason and datetime.date.fromisoformat(first.date)
        if first.replaces:
            assert forms[first.paper, first.replaces].date <= first.date
        else:
            assert not first.after_results, "a first form replaces nothing"


def test_only_changes_after_results_are_held_against_a_claim() -> None:
    log = [
        Logged("2026-01-01", "p", "a", "", False, "the paper"),
        Logged("2026-01-02", "p", "b", "a", True, "another margin"),
        Logged("2026-01-03", "p", "c", "b", False, "a slip"),
        Logged("2026-01-04", "p", "d", "a", False, "the first form is back"),
        Logged("2026-01-05", "q", "d", "a", True, "the same in another paper"),
    ]
    said = {digest: asked_differently_until(log, "p", digest) for digest in "abcdx"}
    assert said == {"a": "", "b": "2026-01-02", "c": "2026-01-02", "d": "", "x": ""}


def test_claims_whose_form_was_changed_after_results_say_so() -> None:
    log = read_log()
    changed = {
        paper: [
            number
            for number, claim in enumerate(load_paper(paper).claims, 1)
            if asked_differently_until(log, paper, claim.digest)
        ]
        for paper in PAPERS
    }
    assert changed == {
        "climb": [], "codasca": [1, 2, 5, 6, 11, 16, 17], "cycp": [], "fcsg": [1, 2, 3, 4], "localscgdam": [],
    }  # fmt: skip
