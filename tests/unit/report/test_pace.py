"""How fast a curve still moved when training ended, and what follows: verdicts of runs cut short, notes, exports."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pandas as pd
import pytest
from report_project import METHODS, Project, run_result, table_of

from fedbench.metric_table import measure
from fedbench.report.page.build import save_page
from fedbench.results.claims.claim_query import longer
from fedbench.results.claims.findings import AtScale, find
from fedbench.results.export import export_reproduced
from fedbench.results.run_facts import pace
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CONFIG = Config(scale="reduced", datasets=["FashionMNIST"])
CLAIM = {"better": {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"}}
LINE = [0.1 * n for n in range(11)]


def curve(values: list[float]) -> pd.DataFrame:
    """A run of 1000 iterations, evaluated at equal steps from 0 on."""
    return pd.DataFrame({"iteration": np.linspace(0, 1000, len(values)), "test_auc": values})


@pytest.mark.parametrize(
    ("values", "decays", "expected"),
    [
        (LINE, [], 0.2),  # a fifth of it in each fifth
        ([0] * 6 + [0.5, 0.6, 0.7, 0.8, 0.9], [], 0.2),  # what came before the last two fifths does not count
        ([0] * 6 + [0.9] * 5, [], 0.0),
        (LINE[:6] + [0.5] * 5, [0.5], 0.1),  # flat since steps fell: half a run, a fifth of it
        ([0.4] * 6 + [0.9] * 5, [0.5, 0.75], 0.0),  # nor what a smaller step brought at once
        (LINE, [0.4], math.nan),  # two evaluations in the last two fifths before the fall
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


def finish(project: Project, config: Config, lead: float, mine: float, rivals: float) -> None:
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


def at(config: Config = CONFIG) -> AtScale:
    """What the scale says of the one claim."""
    (finding,) = find(Plan(config))
    return next(each for each in finding.scales if each.scale == config.scale)


WON, LOST = "won 3, lost 0, open 0 of 18", "won 0, lost 3, open 0 of 18"


@pytest.mark.parametrize(
    ("lead", "mine", "rivals", "words"),
    [
        (0.02, 0.0, 0.003, f"supported: {WON}"),  # as long again would leave 0.005
        (0.02, 0.0, 0.006, f"undecided, curves still move: {WON}; the average agrees"),
        (0.02, 0.006, 0.006, f"supported: {WON}"),  # all rise alike
        (-0.02, 0.0, 0.006, f"contradicted: {LOST}"),
        (-0.02, 0.006, 0.0, f"undecided, curves still move: {LOST}; the average does not agree"),
        # rivals at 0.7 could only come to 1, not to 1.7, which both reach: a tie leads nowhere
        (0.25, 0.0, 0.2, f"undecided, curves still move: {WON}; the average agrees"),
        (0.25, 0.2, 0.2, f"undecided, curves still move: {WON}; the average agrees"),
    ],
)
def test_a_verdict_that_as_long_a_training_again_would_turn_is_none(
    project: Project, lead: float, mine: float, rivals: float, words: str
) -> None:
    finish(project, CONFIG, lead, mine, rivals)
    assert at().words == words and at().early == ("still move" in words)


def test_at_the_papers_own_length_the_end_counts(project: Project) -> None:
    config = CONFIG.model_copy(update={"scale": "paper"})
    finish(project, config, lead=0.02, mine=0.0, rivals=0.006)
    assert at(config).words == f"supported: {WON}" and not at(config).early


def test_of_a_place_that_says_nothing_nothing_follows_and_one_with_fewer_seeds_waits(
    project: Project,
) -> None:
    finish(project, CONFIG, lead=0.02, mine=0.0, rivals=0.006)
    _, unknown, short = (c for c in project.cells("localscgdam", "table1", CONFIG) if c.method == METHODS[0])
    ends = [run_result(run.seed, run.key, {"test_auc": 0.72 + 0.011 * run.seed}) for run in unknown.runs]
    project.write(unknown, [end | {"facts": {}} for end in ends])
    assert at().words == f"supported: {WON}" and at().unproven
    project.forget(short.runs)
    project.finish(short.model_copy(update={"runs": short.runs[:2]}), [0.1, 0.1])
    assert at().words.endswith("won 2, lost 0, open 0 of 18; left out: 1 with fewer than 3 seeds")
    assert at().waiting == 1 and [dict(place)["p"] for place in at().places] == [4, 8]


def test_it_travels_with_the_numbers(project: Project) -> None:
    """Without the curves, from what was shipped."""
    finish(project, CONFIG, lead=0.02, mine=0.0, rivals=0.006)
    note = "12 of 15 curves had not levelled off (more than 0.005 in the last fifth"
    assert note in table_of(CONFIG).markdown()
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    page = save_page(CONFIG).read_text(encoding="utf-8")
    assert page.count("still changing at the end of training (+0.006 in a fifth of it") == 12
    rows = pd.read_csv(export_reproduced(Plan(CONFIG), "table1"))
    rows = rows.query(f"p == 4 and method == '{METHODS[1]}' and metric == 'test_auc'")
    assert list(rows["seed"]) == [0, 1, 2] and list(rows["pace"]) == pytest.approx([0.006] * 3)
    shutil.rmtree(project.root / "results")
    assert at().shipped and at().early and note in table_of(CONFIG).markdown()
