"""How fast a curve still moved when training ended, and what follows: verdicts of runs cut short, notes, exports."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pandas as pd
import pytest
from report_project import METHODS, Project, run_result

from fedbench.metric_table import measure
from fedbench.report import claims as claim_tables
from fedbench.report import tables
from fedbench.report.page.build import save_page as page_build
from fedbench.results.claims.claim_query import longer
from fedbench.results.claims.findings import AtScale, find
from fedbench.results.export import export_reproduced
from fedbench.results.run_facts import pace
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


def curve(values: list[float]) -> pd.DataFrame:
    """A run of 1000 iterations, evaluated at equal steps from 0 on."""
    return pd.DataFrame({"iteration": np.linspace(0, 1000, len(values)), "test_auc": values})


@pytest.mark.parametrize(
    ("values", "decays", "expected"),
    [
        ([0.1 * n for n in range(11)], [], 0.2),  # a straight line: a fifth of it in each fifth
        (
            [0, 0, 0, 0, 0, 0, 0.5, 0.6, 0.7, 0.8, 0.9],
            [],
            0.2,
        ),  # what came before the last two fifths does not count
        ([0, 0, 0, 0, 0, 0, 0.9, 0.9, 0.9, 0.9, 0.9], [], 0.0),
        (
            [0.1 * n for n in range(6)] + [0.5] * 5,
            [0.5],
            0.1,
        ),  # flat since steps fell: half a run, a fifth of it
        ([0.4] * 6 + [0.9] * 5, [0.5, 0.75], 0.0),  # nor what a smaller step brought at once
        (
            [0.1 * n for n in range(11)],
            [0.4],
            math.nan,
        ),  # two evaluations in the last two fifths before the fall
        ([0.5, 0.6, 0.7, 0.8], [], math.nan),  # two evaluations in the last two fifths
        ([0.5] * 10 + [math.inf], [], math.nan),
    ],
)
def test_pace_is_the_change_in_a_fifth_of_the_run(
    values: list[float], decays: list[float], expected: float
) -> None:
    assert pace(curve(values), "test_auc", decays) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_noise_counts_less_than_between_two_evaluations() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (2000, 11))
    fitted = np.std([pace(curve(list(row)), "test_auc") for row in noise])
    assert fitted == pytest.approx(0.01 * 0.2 / math.sqrt(0.1), rel=0.1)  # sigma / sqrt(sum of squares) a run
    assert fitted < 0.5 * 0.01 * math.sqrt(2)


def test_of_a_curve_without_the_metric_nobody_knows() -> None:
    assert math.isnan(pace(curve([0.5] * 11), "test_ap")) and math.isnan(pace(pd.DataFrame(), "test_auc"))


LEADS = {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"}


@pytest.fixture
def project(project: Project) -> Project:
    """A paper that claims that its method leads."""
    project.change(claims=[{"says": "it leads", "in": ["table1"], "better": LEADS}])
    return project


def finish(project: Project, config: Config, lead: float, mine: float, rivals: float) -> None:
    """Let the first method end ``lead`` ahead, its curve rising by ``mine`` in each fifth, those of others likewise."""

    def make() -> None:
        for cell in project.cells("localscgdam", "table1", config):
            ahead = cell.method == METHODS[0]
            runs = []
            for spec in cell.runs:
                end = 0.7 + 0.01 * spec.seed + 0.001 * spec.seed * ahead + lead * ahead
                per_fifth = mine if ahead else rivals
                values = [end - per_fifth * (10 - n) / 2 for n in range(11)]
                project.write_curve(spec.key, curve(values))
                runs.append(run_result(spec.seed, spec.key, {"test_auc": end}))
            project.write(cell, runs)

    project.once(f"{lead} {mine} {rivals} {config.model_dump_json()}", make)


def at(config: Config) -> AtScale:
    """What the scale says of the one claim."""
    (finding,) = find(Plan(config))
    return next(each for each in finding.scales if each.scale == config.scale)


@pytest.fixture
def config() -> Config:
    return Config(scale="reduced", datasets=["FashionMNIST"])


def test_longer_goes_on_at_the_pace_within_what_is_possible() -> None:
    """Five fifths more; what is not known has no number, and a run that diverged stays lost."""
    numbers = pd.DataFrame({"value": [0.8, 0.9, 0.7, -np.inf], "pace": [0.01, 0.05, np.nan, np.nan]})
    assert longer(numbers, measure("test_auc"))["value"].tolist() == pytest.approx(
        [0.85, 1.0, np.nan, -np.inf], nan_ok=True
    )


@pytest.mark.parametrize(
    ("lead", "mine", "rivals", "words"),
    [
        (0.02, 0.0, 0.0, "supported: won 3, lost 0, open 0 of 18"),
        (0.02, 0.0, 0.003, "supported: won 3, lost 0, open 0 of 18"),  # as long again would leave 0.005
        (0.02, 0.0, 0.006, "undecided, curves still move: won 3, lost 0, open 0 of 18; the average agrees"),
        (0.02, 0.006, 0.006, "supported: won 3, lost 0, open 0 of 18"),  # all rise alike
        (-0.02, 0.0, 0.006, "contradicted: won 0, lost 3, open 0 of 18"),
        (
            -0.02,
            0.006,
            0.0,
            "undecided, curves still move: won 0, lost 3, open 0 of 18; the average does not agree",
        ),
        # rivals at 0.7 could only come to 1, not to 1.7, which both reach: a tie leads nowhere
        (0.25, 0.0, 0.2, "undecided, curves still move: won 3, lost 0, open 0 of 18; the average agrees"),
        (0.25, 0.2, 0.2, "undecided, curves still move: won 3, lost 0, open 0 of 18; the average agrees"),
        (0.0, 0.0, 0.0, "undecided: won 0, lost 0, open 3 of 18; the average agrees"),
    ],
)
def test_a_verdict_that_as_long_a_training_again_would_turn_is_none(
    project: Project, config: Config, lead: float, mine: float, rivals: float, words: str
) -> None:
    finish(project, config, lead, mine, rivals)
    result = at(config)
    if lead:
        assert result.words == words
        assert result.early == ("still move" in words)
    else:
        assert not result.early


def test_at_the_papers_own_length_the_end_counts(project: Project) -> None:
    config = Config(scale="paper", datasets=["FashionMNIST"])
    finish(project, config, lead=0.02, mine=0.0, rivals=0.006)
    result = at(config)
    assert result.words == "supported: won 3, lost 0, open 0 of 18" and not result.early


def test_what_is_known_of_some_places_says_nothing_of_the_others(project: Project, config: Config) -> None:
    finish(project, config, lead=0.02, mine=0.0, rivals=0.006)
    cells = project.cells("localscgdam", "table1", config)
    (cell,) = (cell for cell in cells if (cell.method, cell.setting["p"]) == (METHODS[0], 8))
    ends = [run_result(run.seed, run.key, {"test_auc": 0.72 + 0.011 * run.seed}) for run in cell.runs]
    project.write(cell, [end | {"facts": {}} for end in ends])
    result = at(config)
    assert result.words == "supported: won 3, lost 0, open 0 of 18" and result.unproven


def test_places_with_fewer_seeds_wait_and_are_counted(project: Project, config: Config) -> None:
    finish(project, config, lead=0.02, mine=0.0, rivals=0.0)
    cells = project.cells("localscgdam", "table1", config)
    (cell,) = (cell for cell in cells if (cell.method, cell.setting["p"]) == (METHODS[0], 16))
    project.forget(cell.runs)
    project.finish(cell.model_copy(update={"runs": cell.runs[:2]}), [0.1, 0.1])
    result = at(config)
    assert (
        result.words == "supported: won 2, lost 0, open 0 of 18; left out: 1 with fewer than 3 seeds"
        and result.waiting == 1
    )
    assert [dict(place)["p"] for place in result.places] == [4, 8]


def test_it_travels_with_the_numbers(project: Project, config: Config) -> None:
    finish(project, config, lead=0.02, mine=0.0, rivals=0.006)
    said = tables.table_of(Plan(config), "table1").markdown()
    note = "12 of 15 curves had not levelled off (more than 0.005 in the last fifth"
    assert note in said
    rows = pd.read_csv(export_reproduced(Plan(config), "table1"))
    rows = rows.query(f"p == 4 and method == '{METHODS[1]}' and metric == 'test_auc'")
    assert list(rows["seed"]) == [0, 1, 2] and list(rows["pace"]) == pytest.approx([0.006] * 3)
    shutil.rmtree(project.root / "results")
    result = at(config)
    assert result.shipped and result.early, "without the curves, from what was shipped"
    assert note in tables.table_of(Plan(config), "table1").markdown()
    text = claim_tables.claim_table(Plan(config)).markdown()
    assert "undecided, curves still move" in text


def test_the_page_says_it_where_a_number_is_clicked(project: Project, config: Config) -> None:
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    finish(project, config, lead=0.02, mine=0.0, rivals=0.006)
    page = page_build(config).read_text(encoding="utf-8")
    assert page.count("still changing at the end of training (+0.006 in a fifth of it") == 12
