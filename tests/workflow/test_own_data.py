"""A dataset of the user's own, in a CSV: what is done again when it changes, and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from projects import TABLE, Project, jobs


def points(project: Project, shift: float) -> None:
    """Write 60 points of two classes, ``shift`` apart."""
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal() + shift * (n % 2)},{rng.normal()},{'ab'[n % 2]}" for n in range(60)]
    (project.root / "points.csv").write_text("\n".join(["u,v,kind", *lines]) + "\n")


@pytest.fixture
def own(project: Project) -> Project:
    """A project whose table is trained on such points."""
    (project.root / "config/datasets").mkdir(exist_ok=True)
    points(project, 1.0)
    project.write("config/datasets/points.yaml", {"file": "points.csv", "label": "kind"})
    with project.edit("config/papers/localscgdam.yaml") as paper:
        paper["datasets"]["Digits"]["data"] = {"dataset": "points", "clients": 2}
        paper["datasets"]["Digits"]["fixed"] = {"data": {"imbalance": {"rule": "none", "imratio": None}}}
        paper["tables"]["table1"]["methods"] = ["LocalSGDM"]
    with project.edit("config/config.yaml") as config:
        config["seeds"] = [0]
    return project


def test_changed_data_are_prepared_and_trained_again(own: Project) -> None:
    said = own.snakemake(f"{TABLE}.md")
    assert jobs(said).items() >= {"prepare": 1, "partition": 1, "train": 1, "table": 1}.items()
    first, shown = own.runs(), own.table()["LocalSGDM"]["mean"]
    assert len(first) == 1

    points(own, 3.0)
    said = own.snakemake(f"{TABLE}.md")
    assert jobs(said).items() >= {"prepare": 1, "partition": 1, "train": 1, "table": 1}.items()
    assert len(own.runs()) == 2 and own.runs().items() > first.items()
    assert own.table()["LocalSGDM"]["mean"] != shown

    points(own, 1.0)  # back: the first run is there still
    own.snakemake(f"{TABLE}.md")
    assert len(own.runs()) == 2 and own.table()["LocalSGDM"]["mean"] == shown


def test_a_title_or_another_place_trains_nothing(own: Project) -> None:
    own.snakemake(f"{TABLE}.md")
    before = own.runs()
    (own.root / "points.csv").rename(own.root / "moved.csv")
    described = {"file": "moved.csv", "label": "kind", "title": "Points", "licence": "free"}
    own.write("config/datasets/points.yaml", described)
    own.snakemake(f"{TABLE}.md")
    assert own.runs() == before

    (own.root / "moved.csv").unlink()
    said = own.snakemake(f"{TABLE}.md", fails=True)
    assert "error: config/datasets/points.yaml: file moved.csv does not exist" in said
    assert "Traceback" not in said
