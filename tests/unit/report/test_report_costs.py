"""Claims about what runs cost: of each seed where they are known, also from rows that came with the repository."""

from __future__ import annotations

import pandas as pd
import pytest
from report_project import METHODS, Project, run_result

from fedbench.results.claims.findings import AtScale, find
from fedbench.results.export import export_reproduced
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

OURS, RIVAL = METHODS[:2]


@pytest.fixture
def priced(project: Project) -> Project:
    """A paper that says that its method sends hardly more than a rival."""
    ratio = {"method": OURS, "than": RIVAL, "needs": "floats_up", "at_most": 1.05}
    project.change(claims=[{"says": "it costs nothing", "in": ["table1"], "ratio": ratio}])
    return project


def spend(project: Project, config: Config, factors: dict[int, float]) -> None:
    """Let these seeds be all that ran here; our method sends a factor of what the others send."""
    for cell in project.cells("localscgdam", "table1", config):
        sent = {seed: 1000.0 * (factor if cell.method == OURS else 1.0) for seed, factor in factors.items()}
        runs = [run for run in cell.runs if run.seed in sent]
        project.write(
            cell, [run_result(r.seed, r.key, {"test_auc": 0.9, "floats_up": sent[r.seed]}) for r in runs]
        )


def at_reduced(config: Config) -> AtScale:
    """What scale reduced says of the claim."""
    (finding,) = find(Plan(config))
    return finding.scales[1]


def shipped(project: Project, config: Config) -> AtScale:
    """What an export of it says where nothing was trained."""
    export_reproduced(Plan(config), "table1")
    for cell in project.cells("localscgdam", "table1", config):
        (project.root / cell.path).unlink(missing_ok=True)
    return at_reduced(config)


def test_a_cost_that_all_seeds_share_is_that_of_each_when_shipped(priced: Project, reduced: Config) -> None:
    spend(priced, reduced, {0: 1.02, 1: 1.02, 2: 1.02})
    local = at_reduced(reduced)
    assert local.words == "supported: won 6, lost 0, open 0 of 18" and not local.shipped
    elsewhere = shipped(priced, reduced)
    assert elsewhere.words == local.words and elsewhere.shipped
    assert elsewhere.verdict.seeds == 3


def test_a_mean_over_seeds_is_no_cost_of_a_seed(priced: Project, reduced: Config) -> None:
    """As in files that were exported before each run had its own."""
    spend(priced, reduced, {0: 1.01, 1: 1.02, 2: 1.03})
    assert at_reduced(reduced).verdict.seeds == 3
    elsewhere = shipped(priced, reduced)
    assert elsewhere.verdict.seeds == 3
    path = priced.root / "reproduced/reduced/localscgdam.csv"
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    sent = (rows["metric"] == "floats_up") & (rows["method"] == OURS)
    rows.loc[sent, ["value", "status"]] = ["1020", "averaged"]
    rows.to_csv(path, index=False)
    assert at_reduced(reduced).words == "not run"


def test_a_shipped_cost_joins_those_of_seeds_trained_here(priced: Project, reduced: Config) -> None:
    """Each is that of its own seed, though they differ."""
    spend(priced, reduced.model_copy(update={"seeds": [0]}), {0: 1.02})
    shipped(priced, reduced.model_copy(update={"seeds": [0]}))
    spend(priced, reduced, {1: 1.01, 2: 1.03})
    both = at_reduced(reduced)
    assert both.verdict.seeds == 3
