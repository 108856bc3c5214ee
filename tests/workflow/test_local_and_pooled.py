"""Hospitals alone, together and pooled, through Snakemake: a CSV to a table by hospital with what each gains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from projects import Project, jobs

TABLE, FIGURE = "tables/localscgdam/table1", "figures/localscgdam/figure1"
METRICS = ["test_auc", "test_auc@sites", "worst_site_test_auc"]


@pytest.fixture
def hospitals(project: Project) -> Project:
    """Three hospitals, the last of which has healthy patients alone."""
    (project.root / "config/datasets").mkdir(exist_ok=True)
    rng, lines = np.random.default_rng(0), ["a,b,ill,hospital"]
    for place, (hospital, n) in enumerate({"Basel": 60, "Genf": 40, "Bern": 20}.items()):
        for number in range(n):
            ill = number % 2 * (hospital != "Bern")
            lines.append(f"{rng.normal() + ill},{rng.normal() + place},{'ny'[ill]},{hospital}")
    (project.root / "ill.csv").write_text("\n".join(lines) + "\n")
    given = {"file": "ill.csv", "label": "ill", "positive": "y", "site": "hospital"}
    project.write("config/datasets/points.yaml", given)
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["datasets"]["Digits"]["data"] = {
            "dataset": "points", "clients": "sites", "partition": {"rule": "by_site"},
        }  # fmt: skip
        paper["datasets"]["Digits"]["fixed"] = {"data": {"imbalance": {"rule": "none", "imratio": None}}}
        asked = {"methods": ["LocalSGDM"], "settings": {}, "metrics": METRICS, "published": None}
        paper["tables"]["table1"] |= asked | {
            "datasets": ["Digits"], "additions": [], "references": ["local", "pooled"], "rows": ["metric"],
            "columns": ["method"],
        }  # fmt: skip
        paper["figures"]["figure1"] = {
            "title": "Gain", "kind": "forest", "panels": "dataset", "datasets": ["Digits"], **asked,
            "metrics": METRICS[:2], "references": ["local"],
        }  # fmt: skip
        del paper["figures"]["figure1"]["published"]
        paper["claims"] = []
    with project.edit("config/config.yaml") as config:
        config["seeds"] = [0]
    return project


def test_a_csv_becomes_a_table_of_who_gains_and_a_forest_plot_of_it(hospitals: Project) -> None:
    said = hospitals.snakemake(f"{TABLE}.md", f"{FIGURE}.pdf")
    assert jobs(said)["train"] == 3
    rows = pd.read_csv(hospitals.root / f"{TABLE}.csv").set_index(["metric", "training"])
    mean = rows["mean"]
    for site in ("Basel", "Genf"):
        name = f"test_auc@{site}"
        gain = mean[name, "federated"] - mean[name, "local"]
        assert mean[name, "gain over local"] == pytest.approx(gain, abs=1e-6)
        ends = [rows.loc[(name, "gain over local"), end] for end in ("low", "mean", "high")]
        assert all(low <= high for low, high in pairwise(ends)) and ends[0] < ends[2]
    assert rows.loc[("test_auc@Bern", "local"), "reason"] == "no AUC: one class in training"
    assert rows.loc[("test_auc@Bern", "federated"), "status"] == "undefined", (
        "nor has it two classes to test on"
    )
    samples = rows.loc["test_auc@Basel", "samples"]
    assert samples["pooled"] == samples["federated"] > samples["local"] > 0, "one of three has no model"
    text = (hospitals.root / f"{TABLE}.md").read_text()
    assert "no AUC: one class in training" in text and "gain over local" in text
    drawn = pd.read_csv(hospitals.root / f"{FIGURE}.csv").set_index("metric")
    assert drawn.loc["test_auc@Basel", "mean"] == pytest.approx(mean["test_auc@Basel", "gain over local"])
    assert "test_auc@Bern" not in drawn.index
    assert "train" not in jobs(hospitals.snakemake(f"{TABLE}.md"))
