"""Claims read in other ways: at another evaluation, with other constants."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from report_project import METHODS, Project, localscgdam, run_result

from fedbench.measures import measure
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.numbers.export import export_reproduced
from fedbench.report.numbers.finding import Finding
from fedbench.report.numbers.findings import find
from fedbench.report.numbers.variants import longer
from fedbench.report.tables import build as tables
from fedbench.report.tables.claims import make

LEADS = {
    "says": "it leads",
    "in": ["table1"],
    "better": {"method": METHODS[0], "than": METHODS[1:], "metric": "test_auc"},
    "holds": "average",
}


def save(project: Project, **train: object) -> None:
    paper = localscgdam()
    paper["claims"] = [LEADS]
    paper["defaults"] = {
        "data": {**paper["defaults"]["data"], "validation": 0.1},
        "train": {**paper["defaults"]["train"], **train},
    }
    for method in METHODS:
        paper["methods"][method] |= {"params": {"lr": 0.1}, "published": ["lr"]}
    project.save_paper("localscgdam", paper)


def finish(project: Project, config: Config, lead: float, best: float) -> None:
    """Let the first method lead by ``lead`` as reported, and by ``best`` at the evaluation that validation prefers."""
    for cell in project.cells("localscgdam", "table1", config):
        ahead = cell.method == METHODS[0]
        runs = []
        for spec in cell.runs:
            others = 0.8 + 0.01 * spec.seed
            test = [0.5, others + best * ahead, others + lead * ahead]
            curve = {"round": [0, 1, 2], "val_auc": [0.5, 0.9, 0.85], "test_auc": test}
            project.write_curve(spec.key, curve)
            runs.append(run_result(spec.seed, spec.key, {"test_auc": test[-1]}))
        project.write(cell, runs)


def test_longer_goes_on_at_the_pace_within_what_is_possible() -> None:
    """Five fifths more; what is not known has no number, and a run that diverged stays lost."""
    numbers = pd.DataFrame({"value": [0.8, 0.9, 0.7, -np.inf], "pace": [0.01, 0.05, np.nan, np.nan]})
    assert longer(numbers, measure("test_auc"))["value"].tolist() == pytest.approx(
        [0.85, 1.0, np.nan, -np.inf], nan_ok=True
    )


def finding(config: Config) -> Finding:
    """What is found of the one claim."""
    return find(Plan(config))[0]


@pytest.fixture
def config() -> Config:
    """The scale of these runs, with tuned constants."""
    return Config(scale="reduced", datasets=["FashionMNIST"])


def test_the_evaluation_that_validation_prefers_can_turn_a_claim(project: Project, config: Config) -> None:
    save(project)
    finish(project, config, lead=0.02, best=-0.02)
    first = finding(config)
    assert ("reduced", True) in first.main.strip and (
        "reduced, another evaluation",
        False,
    ) in first.main.strip
    assert first.main.fragile
    text = make(Plan(config)).markdown()
    assert (
        "Claim 1 is fragile: shown at reduced, reduced (without one seed); not at reduced (another evaluation)."
        in text
    )


def test_where_the_best_is_reported_the_last_is_looked_at(project: Project, config: Config) -> None:
    save(project, select="val_auc")
    finish(project, config, lead=0.02, best=-0.02)  # the last row of each curve is the reported one here
    assert ("reduced, another evaluation", True) in finding(config).main.strip


def test_published_constants_can_turn_a_claim(project: Project, config: Config) -> None:
    save(project)
    tuned(project)
    finish(project, config, lead=0.02, best=0.02)
    assert not finding(config).main.fragile, "nobody has run the published constants"
    finish(project, config.model_copy(update={"constants": "paper"}), lead=-0.02, best=-0.02)
    finish(project, config, lead=0.02, best=0.02)  # the cells' files again those of this configuration
    first = finding(config)
    assert ("reduced, published constants", False) in first.main.strip and first.main.fragile


def test_shipped_numbers_are_of_one_choice_of_constants(project: Project, config: Config) -> None:
    """Tuned ones were taken for the published ones, and so the two always agreed."""
    save(project)
    tuned(project)
    finish(project, config, lead=0.02, best=0.02)
    export_reproduced(Plan(config), "table1")
    shutil.rmtree(project.root / "results")
    first = finding(config)
    assert first.main.shipped and "reduced, published constants" not in dict(first.main.strip)
    for constants, count in (("tuned", 15), ("paper", 0)):
        asked = config.model_copy(update={"constants": constants})
        assert tables.make(Plan(asked), "table1").rows["shipped"].sum() == count


def tuned(project: Project) -> None:
    """Tune the step of every method."""
    path = project.root / "config" / "tuned" / "localscgdam" / "FashionMNIST.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"chosen": {method: {"lr": 0.0123} for method in METHODS}}))
