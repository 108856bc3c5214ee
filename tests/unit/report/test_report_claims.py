"""Claims of a paper held against print and runs: in words and tables, of runs cut short, and on data that stand in."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_project import METHODS, REDUCED, Project, localscgdam, run_result, table_of

from fedbench.metric_table import measure
from fedbench.report import claims
from fedbench.report import claims as tables
from fedbench.report.page import build as page
from fedbench.report.page.build import save_page
from fedbench.results.claims.claim_query import longer
from fedbench.results.claims.findings import AtScale, find
from fedbench.results.claims.judge import NONE, NOT_TESTABLE, UNDECIDED, Effect
from fedbench.results.export import export_reproduced
from fedbench.results.run_facts import pace
from fedbench.store import code
from fedbench.study.claims import ClaimSpec
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

LEADS = {"better": {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"}, "holds": "all"}
LONG = {"method": METHODS[0], "when": {"p": 16}, "than": {"p": 4}, "metric": "test_auc", "margin": 0.01}
LEAD = [0.02, 0.021, 0.022]
CLAIMS = [
    {"says": "it leads", "at": "6.2", "in": ["table1"], **LEADS},
    {"says": "p costs nothing", "in": ["table1"], "no_worse": LONG},
    {"says": "also with few positives", "in": ["figure4"], **LEADS},
]


@pytest.fixture
def claimed(project: Project) -> Project:
    """A paper with three claims."""
    project.change(claims=CLAIMS)
    return project


def finish(project: Project, config: Config, lead: list[float], target: str = "table1") -> None:
    """Let the first method lead by ``lead`` per seed over rivals that share each seed's luck."""

    luck = [0.9 + 0.03 * seed for seed in range(len(lead))]
    ahead = [a + b for a, b in zip(luck, lead, strict=True)]
    project.finish_each(lambda cell: ahead if cell.method == METHODS[0] else luck, config, target)


def words(config: Config, number: int = 1) -> dict[str, str]:
    """What each scale says of a claim."""
    return {at.scale: at.words for at in find(Plan(config))[number - 1].scales}


def test_nothing_run_shows_print_alone_and_the_tables_that_claims_take(claimed: Project) -> None:
    finding, two, three = find(Plan(REDUCED))
    assert (finding.printed.tally, two.printed.tally, three.printed.tally) == ("17 of 18", "1 of 1", "–")
    assert {at.words for at in finding.scales} == {"not run"}
    assert [at.scale for at in finding.scales] == ["demo", "reduced", "paper"], "nearest to the paper last"
    missing = "Claims without results: 1, 2 (table1); 3 (figure4)."
    table = tables.claim_table(Plan(REDUCED))
    assert missing in table.remarks and all(table.forms().values())
    finish(claimed, REDUCED, LEAD)
    assert "Claims without results: 3 (figure4)." in tables.claim_table(Plan(REDUCED)).remarks
    claimed.change(claims=[])
    assert all(tables.claim_table(Plan(REDUCED)).forms().values())


@pytest.mark.parametrize(
    ("lead", "says"),
    [
        (LEAD, "supported: won 6, lost 0, open 0 of 18"),
        ([-0.0299, -0.03, -0.0301], "contradicted: won 0, lost 6, open 0 of 18"),
        ([0.0005, 0.0, -0.0005], "not supported: won 0, lost 0, open 6 of 18"),
        ([0.05, 0.0, -0.04], "undecided: won 0, lost 0, open 6 of 18; means agree in 6"),
    ],
)
def test_three_seeds_decide(claimed: Project, lead: list[float], says: str) -> None:
    finish(claimed, REDUCED, lead)
    assert words(REDUCED)["reduced"] == says
    (finding, *_) = find(Plan(REDUCED))
    of_claim = says.startswith(("supported", "undecided"))
    assert math.isnan(finding.main.q) != of_claim, "q is of no other finding"
    assert ("q = " in tables.seeds_text(finding)) == of_claim


def test_what_holds_somewhere_is_not_refuted_while_settings_wait(project: Project) -> None:
    project.change(claims=[{"says": "somewhere it leads", "in": ["table1"], **LEADS, "holds": "some"}])
    finish(project, REDUCED, [-0.0299, -0.03, -0.0301])
    assert words(REDUCED)["reduced"].startswith("undecided: won 0, lost 6, open 0 of 18")


def test_one_seed_leans_and_two_have_an_interval(claimed: Project) -> None:
    for seeds in ([0], [0, 1]):
        config = Config(scale="reduced", seeds=seeds)
        finish(claimed, config, [0.02, 0.03][: len(seeds)])
        (finding, *_) = find(Plan(config))
        assert finding.main.words == "undecided: won 0, lost 0, open 6 of 18; means agree in 6"
        assert ("[" in tables.effect_text(finding, Plan(config).study)) == (len(seeds) == 2)
        rows = pd.read_csv(io.StringIO(tables.claim_table(Plan(config)).csv())).query("scale == 'reduced'")
        assert pd.notna(rows["low"].iloc[0]) == (len(seeds) == 2)


def test_an_interval_is_written_with_its_signs_and_as_the_ratio_that_is_asked_for(claimed: Project) -> None:
    """It has no ends where a rival diverged in all seeds but one."""
    finish(claimed, REDUCED, LEAD)
    finding = find(Plan(REDUCED))[0]
    fewer = replace(finding.main, verdict=replace(finding.main.verdict, seeds=1))  # at another setting
    assert tables.seeds_text(finding, fewer).startswith("3"), "of the comparison that is shown"
    verdict = replace(finding.main.verdict, decides=Effect(0.02, -math.inf, math.inf, seeds=3))
    unbounded = replace(finding, scales=[replace(finding.main, verdict=verdict)])
    assert tables.effect_text(unbounded, Plan(REDUCED).study).startswith("+0.020 [−∞, ∞] on ")

    rounds = {"method": METHODS[0], "than": METHODS[1], "needs": "round"}
    verdict = replace(verdict, decides=Effect(math.log(0.5), math.log(0.25), 0.0, seeds=3))
    for bound, says in (("at_least", "ratio 0.50 [0.25, 1.00]"), ("at_most", "ratio 2.00 [1.00, 4.00]")):
        claim = ClaimSpec.model_validate({"says": "x", "in": "table1", "ratio": {**rounds, bound: 2}})
        of_costs = replace(finding, claim=claim, scales=[replace(finding.main, verdict=verdict)])
        assert tables.effect_text(of_costs, Plan(REDUCED).study).startswith(says)


def test_a_stand_in_gives_no_verdict(claimed: Project) -> None:
    config = Config(scale="demo", seeds=[0, 1, 2])
    finish(claimed, config, LEAD)
    (finding, *_) = find(Plan(config))
    said = "Digits, no verdict: shown in 3 of 3"
    assert (finding.scales[0].words, finding.scales[0].stand_in) == (said, ("Digits",))
    assert page.colour_of_claim(finding.scales[0]) == "absent"
    table = tables.claim_table(Plan(config))
    assert f"*{said}*" in table.markdown() and tables.STAND_IN in table.legend
    rows = pd.read_csv(io.StringIO(table.csv()))
    of_demo = rows.query("claim == 1 and scale == 'demo'").iloc[0]
    assert of_demo[["verdict", "places", "places_of_claim"]].tolist() == ["stand-in", 3, 18]
    assert rows["q"].isna().all()
    assert "] on Digits, p = " in tables.effect_text(finding, Plan(config).study)
    real = Config(scale="reduced", seeds=[0, 1, 2])
    finish(claimed, real, LEAD)
    text = tables.claim_table(Plan(real)).terminal()
    for says in ("demo, comparison .* on Digits, p", "reduced, decided by .* on (CIFAR10|FashionMNIST), p"):
        assert re.search(f"^    {says}", text, re.M), "each scale has its own"
    assert tables.STAND_IN not in tables.claim_table(Plan(real)).legend, "not only stand-ins have run"


def test_the_effect_is_that_of_the_scale_with_seeds_enough(claimed: Project) -> None:
    (claimed.root / "config/config.yaml").write_text("scale: reduced\n")
    finish(claimed, REDUCED, LEAD)
    for lead, main in (([0.05], "reduced"), ([0.03, 0.031, 0.032], "paper")):
        config = Config(scale="paper", seeds=list(range(len(lead))))
        finish(claimed, config, lead)
        (finding, *_) = find(Plan(config))
        assert finding.main.scale == main


def test_verdicts_without_curves_are_named(claimed: Project) -> None:
    words = "Convergence not checked (no curves stored): claims"
    finish(claimed, REDUCED, [0.0299, 0.03, 0.0301])
    assert f"{words} 1, 2." in tables.claim_table(Plan(REDUCED)).remarks
    finish(claimed, Config(scale="paper"), LEAD)
    finish(claimed, REDUCED, [0.0, 0.0, 0.0395])
    notes = tables.claim_table(Plan(REDUCED)).remarks
    assert f"{words} 2." in notes, "claim 1 is undecided at reduced; at scale paper its end counts"


def test_what_ran_is_written_in_all_forms_counted_by_places_and_counts_as_shipped_too(
    claimed: Project,
) -> None:
    finish(claimed, REDUCED, LEAD)
    paths = tables.save(tables.claim_table(Plan(REDUCED)))
    assert {path.parent for path in paths} == {Path("tables", "localscgdam")}
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in tables.save(tables.claim_table(Plan(REDUCED)))] == before
    provenance = json.loads(paths[-1].read_text())["claims"][0]
    assert provenance["verdicts"]["reduced"] == "supported" and len(provenance["cells"]["reduced"]) == 30
    said = tables.claim_table(Plan(REDUCED)).terminal()
    assert "it leads (6.2)" in said and "reduced: supported: won 6" in said and "demo: " not in said
    main = find(Plan(REDUCED))[0].main
    assert replace(main, total=1).words == "supported"
    nowhere = replace(main, verdict=replace(main.verdict, kind=NOT_TESTABLE))
    assert nowhere.words == "not testable: its condition holds in none of 6 settings", "of 18 six ran"
    bounded = replace(main, verdict=replace(main.verdict, kind=UNDECIDED, overall=NONE, at=None))
    assert bounded.words.endswith("; the average is not known")
    export_reproduced(Plan(REDUCED), "table1")
    for cell in claimed.cells():
        if cell.method == METHODS[1] and cell.dataset == "CIFAR10":
            (claimed.root / cell.path).unlink()
    without = REDUCED.model_copy(update={"shipped": False})
    assert words(without)["reduced"] == "supported: won 3, lost 0, open 0 of 18", (
        "a part of the rivals is no place"
    )
    assert "‡" not in tables.claim_table(Plan(without)).markdown()
    shutil.rmtree(claimed.root / "results")
    text = tables.claim_table(Plan(REDUCED)).markdown()
    assert "**supported: won 6, lost 0, open 0 of 18**‡" in text and "‡: reference results" in text
    assert "supported: won" not in tables.claim_table(Plan(without)).markdown()


def test_runs_of_other_code_are_counted_by_scale_in_what_is_shown_of_them(
    claimed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each scale has cells of the same names, and here of the same runs."""
    monkeypatch.setattr(code, "digest_of", lambda run: "today")
    for scale in ("reduced", "paper"):
        finish(claimed, Config(scale=scale), LEAD)
    (cell, *_) = claimed.cells()
    runs = claimed.runs(cell)
    for run, by in zip(runs, ("old", "old", "today"), strict=True):
        run["provenance"] |= {"code": by}
    claimed.write(cell, runs)
    table = tables.claim_table(Plan(REDUCED))
    counts = {cell.name: 2}
    assert json.loads(table.json())["other_code"] == {"reduced": counts, "paper": counts}
    of_scale = [note for note in table.legend if "2 of 3 runs" in note]
    for scale, note in zip(("reduced", "paper"), of_scale, strict=True):
        assert scale in note and f"{cell.dataset}: {cell.method})" in note
        assert note in table.markdown() and note in " ".join(table.terminal(remarks=False).split())


def test_somewhere_waits_for_every_cell_and_for_no_print_that_lacks(project: Project) -> None:
    exists = {"method": METHODS[0], "above": 0.8, "others_below": 0.5, "metric": "test_auc"}
    claims = [{"says": "alone", "in": ["table1"], "exists": exists}]
    head = "dataset,method,p,metric,mean\n"
    printed = (
        f"CIFAR10,{method},{p},test_auc,{0.9 if method == METHODS[0] else 0.3}"
        for method in METHODS[:2]
        for p in (4, 8)
    )
    (project.root / "own.csv").write_text(head + "\n".join(printed) + "\n")
    values = {METHODS[0]: [0.9] * 3, METHODS[1]: [0.3] * 3}
    for only, said in ({}, "not run"), ({"dataset": ["Melanoma"]}, "won 6, lost 0, open 0 of 18"):
        rest = {method: {"only": only} for method in METHODS[2:]}
        shown = {"table1": {"published": "own.csv"}}, {"figure4": {"methods": METHODS[:2]}}
        project.change(claims=claims, methods=rest, tables=shown[0], figures=shown[1])
        project.finish_each(lambda cell: values.get(cell.method))
        assert said in words(REDUCED)["reduced"]
        assert find(Plan(REDUCED))[0].printed.tally == "2 of 2"


def test_rounds_to_a_target_count_as_shipped_too(project: Project) -> None:
    """Without curves their table counts: with 250 rounds a miss is worth at least that, as it is with them."""
    target = {"test_auc": 0.9}
    ratio = {"method": METHODS[0], "than": METHODS[1], "needs": "round", "to": target, "at_most": 0.5}
    project.change(
        tables={"table1": {"metrics": [], "rounds_to": target, "published": None}},
        claims=[{"says": "it needs fewer rounds", "in": ["table1"], "ratio": ratio}],
    )
    for cell in project.cells():
        for seed, run in enumerate(cell.runs):
            best = 0.95 if seed or cell.method != METHODS[1] else 0.8
            reached = 10.0 + (90 + seed) * (cell.method != METHODS[0])
            rounds = {"round": [0.0, reached, run.train.known_rounds], "test_auc": [0.5, best, best]}
            project.write_curve(run.key, rounds)
        project.finish(cell, [0.95] * len(cell.runs))
    (trained,) = find(Plan(REDUCED))
    assert trained.main.ran and not trained.main.diverged, "it missed the target"
    export_reproduced(Plan(REDUCED), "table1")
    shutil.rmtree(project.root / "results")
    (shipped,) = find(Plan(REDUCED))
    assert repr(shipped.main.verdict) == repr(trained.main.verdict)
    assert not trained.main.shipped and shipped.main.shipped


def test_a_ratio_of_ends_needs_curves_as_a_difference_does(claimed: Project) -> None:
    ratio = {"largest": "p", "within": 0.01, "of": 4, "method": METHODS[0], "than": METHODS[1]}
    ratio |= {"metric": "test_auc", "at_least": 0.5}
    claimed.change(claims=[{"says": "hardly less", "in": ["table1"], "ratio": ratio}])
    claimed.finish_each(lambda cell: [0.9 - 0.1 * (cell.setting["p"] == 16)] * 3, REDUCED)
    (finding,) = find(Plan(REDUCED))
    assert finding.main.unproven
    # every seed keeps up to the same p, and a p lies between is not known: 4, 8 and 16 are log 2 apart
    assert finding.main.verdict.overall.sd == pytest.approx(math.log(2) * math.sqrt(2 / 12))
    assert finding.main.verdict.p > 0


def test_a_claim_that_cannot_fail_has_no_verdict(claimed: Project) -> None:
    claimed.change(claims=[{**CLAIMS[0], "untested": "it is configured"}])
    finish(claimed, REDUCED, LEAD)
    (finding,) = find(Plan(REDUCED))
    table = tables.claim_table(Plan(REDUCED))
    assert "| not tested: means show it in 6 of 6 |" in table.markdown()
    assert "Claim 1 is not tested: it is configured." in table.remarks
    assert math.isnan(finding.main.verdict.p) and math.isnan(finding.main.q), "no claim among others"
    assert not finding.main.unproven


FASHION = Config(scale="reduced", datasets=["FashionMNIST"])
CLAIM = {"better": {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"}}
STRAIGHT = [0.1 * n for n in range(11)]


def curve(values: list[float]) -> pd.DataFrame:
    """A run of 1000 iterations, evaluated at equal steps from 0 on."""
    return pd.DataFrame({"iteration": np.linspace(0, 1000, len(values)), "test_auc": values})


@pytest.mark.parametrize(
    ("values", "decays", "expected"),
    [
        (STRAIGHT, [], 0.2),  # a fifth of it in each fifth
        ([0] * 6 + [0.5, 0.6, 0.7, 0.8, 0.9], [], 0.2),  # what came before the last two fifths does not count
        ([0] * 6 + [0.9] * 5, [], 0.0),
        (STRAIGHT[:6] + [0.5] * 5, [0.5], 0.1),  # flat since steps fell: half a run, a fifth of it
        ([0.4] * 6 + [0.9] * 5, [0.5, 0.75], 0.0),  # nor what a smaller step brought at once
        (STRAIGHT, [0.4], math.nan),  # two evaluations in the last two fifths before the fall
        ([0.5, 0.6, 0.7, 0.8], [], math.nan),  # two evaluations in the last two fifths
        ([0.5] * 10 + [math.inf], [], math.nan),
    ],
)
def test_pace_is_the_change_in_a_fifth_of_the_run(
    values: list[float], decays: list[float], expected: float
) -> None:
    assert pace(curve(values), "test_auc", decays) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert math.isnan(pace(curve(values), "test_ap")) and math.isnan(pace(pd.DataFrame(), "test_auc"))


def test_noise_counts_less_than_between_two_evaluations() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (2000, 11))
    fitted = np.std([pace(curve(list(row)), "test_auc") for row in noise])
    assert fitted == pytest.approx(0.01 * 0.2 / math.sqrt(0.1), rel=0.1)  # sigma / sqrt(sum of squares) a run


def test_longer_goes_on_at_the_pace_within_what_is_possible() -> None:
    """Five fifths more; what is not known has no number, and a run that diverged stays lost."""
    numbers = pd.DataFrame({"value": [0.8, 0.9, 0.7, -np.inf], "pace": [0.01, 0.05, np.nan, np.nan]})
    after = longer(numbers, measure("test_auc"))["value"].tolist()
    assert after == pytest.approx([0.85, 1.0, np.nan, -np.inf], nan_ok=True)


def train_on(project: Project, config: Config, lead: float, mine: float, rivals: float) -> None:
    """Let the first method end ``lead`` ahead, its curve rising by ``mine`` in each fifth, those of others likewise."""

    def make() -> None:
        for cell in project.cells("localscgdam", "table1", config):
            ahead = cell.method == METHODS[0]
            ends = [0.7 + 0.01 * seed + (0.001 * seed + lead) * ahead for seed in range(len(cell.runs))]
            for run, end in zip(cell.runs, ends, strict=True):
                fifth = mine if ahead else rivals
                project.write_curve(run.key, curve([end - fifth * (10 - n) / 2 for n in range(11)]))
            project.finish(cell, ends)

    project.change(claims=[{"says": "it leads", "in": ["table1"], **CLAIM}])
    project.once(f"{lead} {mine} {rivals} {config.model_dump_json()}", make)


def at_reduced(config: Config = FASHION) -> AtScale:
    """What the scale says of the one claim."""
    (finding,) = find(Plan(config))
    return next(each for each in finding.scales if each.scale == config.scale)


ALL_WON, ALL_LOST = "won 3, lost 0, open 0 of 18", "won 0, lost 3, open 0 of 18"


@pytest.mark.parametrize(
    ("lead", "mine", "rivals", "words"),
    [
        (0.02, 0.0, 0.003, f"supported: {ALL_WON}"),  # as long again would leave 0.005
        (0.02, 0.0, 0.006, f"undecided, curves still move: {ALL_WON}; the average agrees"),
        (0.02, 0.006, 0.006, f"supported: {ALL_WON}"),  # all rise alike
        (-0.02, 0.0, 0.006, f"contradicted: {ALL_LOST}"),
        (-0.02, 0.006, 0.0, f"undecided, curves still move: {ALL_LOST}; the average does not agree"),
        # rivals at 0.7 could only come to 1, not to 1.7, which both reach: a tie leads nowhere
        (0.25, 0.0, 0.2, f"undecided, curves still move: {ALL_WON}; the average agrees"),
        (0.25, 0.2, 0.2, f"undecided, curves still move: {ALL_WON}; the average agrees"),
    ],
)
def test_a_verdict_that_as_long_a_training_again_would_turn_is_none(
    project: Project, lead: float, mine: float, rivals: float, words: str
) -> None:
    train_on(project, FASHION, lead, mine, rivals)
    assert at_reduced().words == words and at_reduced().early == ("still move" in words)


def test_at_the_papers_own_length_the_end_counts(project: Project) -> None:
    config = FASHION.model_copy(update={"scale": "paper"})
    train_on(project, config, lead=0.02, mine=0.0, rivals=0.006)
    assert at_reduced(config).words == f"supported: {ALL_WON}" and not at_reduced(config).early


def test_of_a_place_that_says_nothing_nothing_follows_and_one_with_fewer_seeds_waits(
    project: Project,
) -> None:
    train_on(project, FASHION, lead=0.02, mine=0.0, rivals=0.006)
    _, unknown, short = (c for c in project.cells("localscgdam", "table1", FASHION) if c.method == METHODS[0])
    ends = [run_result(run.seed, run.key, {"test_auc": 0.72 + 0.011 * run.seed}) for run in unknown.runs]
    project.write(unknown, [end | {"facts": {}} for end in ends])
    assert at_reduced().words == f"supported: {ALL_WON}" and at_reduced().unproven
    project.forget(short.runs)
    project.finish(short.model_copy(update={"runs": short.runs[:2]}), [0.1, 0.1])
    assert at_reduced().words.endswith("won 2, lost 0, open 0 of 18; left out: 1 with fewer than 3 seeds")
    assert at_reduced().waiting == 1 and [dict(place)["p"] for place in at_reduced().places] == [4, 8]


def test_it_travels_with_the_numbers(project: Project) -> None:
    """Without the curves, from what was shipped."""
    train_on(project, FASHION, lead=0.02, mine=0.0, rivals=0.006)
    note = "12 of 15 curves had not levelled off (more than 0.005 in the last fifth"
    assert note in table_of(FASHION).markdown()
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    page = save_page(FASHION).read_text(encoding="utf-8")
    note_of_cell = "(+0.006 in a fifth of it, before step sizes fell if they did)"
    assert page.count(f"still changing at the end of training {note_of_cell}") == 12
    rows = pd.read_csv(export_reproduced(Plan(FASHION), "table1"))
    rows = rows.query(f"p == 4 and method == '{METHODS[1]}' and metric == 'test_auc'")
    assert list(rows["seed"]) == [0, 1, 2] and list(rows["pace"]) == pytest.approx([0.006] * 3)
    shutil.rmtree(project.root / "results")
    assert at_reduced().shipped and at_reduced().early and note in table_of(FASHION).markdown()


DEMO = Config(scale="demo", seeds=[0, 1, 2])
NO_VERDICT = "Digits, no verdict: shown in 3 of 3"


@pytest.fixture
def stood_in(project: Project) -> Project:
    """Digits alone has run, with the method of the claim far ahead."""
    claim_of(project)
    (project.root / "config/config.yaml").write_text("scale: demo\n")
    project.fill("localscgdam", "table1", DEMO)
    project.finish_each(lambda cell: [0.98 if cell.method == METHODS[0] else 0.9] * 3, DEMO)
    return project


def claim_of(project: Project, table: dict[str, Any] | None = None, **of_claim: Any) -> None:
    """Write the paper with other keys of its table and of its claim."""
    paper = localscgdam()
    paper["claims"][0] |= {"says": "LocalSCGDAM leads", **of_claim}
    paper["tables"]["table1"] |= table or {}
    project.save_paper("localscgdam", paper)


@pytest.mark.parametrize(
    ("table", "of_claim", "words"),
    [
        # places of data that the paper does not have, named by its own table; by decision with the name of the data
        ({"datasets": ["Digits"], "published": None}, {}, NO_VERDICT),
        ({"datasets": ["Digits"], "published": None}, {"own_data": True}, "supported on Digits: won 3"),
        ({}, {"only": {"dataset": "CIFAR10"}}, "not run"),
    ],
)
def test_whose_data_a_claim_is_about_decides(
    stood_in: Project, table: dict[str, Any], of_claim: dict[str, Any], words: str
) -> None:
    claim_of(stood_in, table, **of_claim)
    (finding,) = claims.claim_table(Plan(DEMO)).findings
    demo = next(at for at in finding.scales if at.scale == "demo")
    assert demo.words.startswith(words) and demo.stand_in == ("Digits",) * (words == NO_VERDICT)


def test_published_numbers_of_no_dataset_are_not_held_against_a_stand_in(stood_in: Project) -> None:
    """A file of one's own without the column ``dataset`` fits every dataset of the paper, and no other."""
    stood_in.change(tables={"table1": {"published": "mine.csv"}})
    (stood_in.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.9\n")
    rows = table_of(DEMO).rows.query("method == 'CoDA'").groupby("dataset")
    assert list(rows["verdict"].unique()["Digits"]) == ["not published"]
    assert list(rows["published_mean"].unique()["CIFAR10"]) == ["0.9"]
