"""A dataset of the user's own: what is done again when it changes, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from projects import TABLE, Project, jobs


def points(project: Project, shift: float, path: str = "points.csv") -> None:
    """Write 60 points of two classes, ``shift`` apart."""
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal() + shift * (n % 2)},{rng.normal()},{'ab'[n % 2]}" for n in range(60)]
    (project.root / path).write_text("\n".join(["u,v,kind", *lines]) + "\n")


@pytest.fixture
def own_data(project: Project) -> Project:
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


def test_changed_data_are_prepared_and_trained_again_a_title_or_another_place_trains_nothing(
    own_data: Project,
) -> None:
    said = own_data.snakemake(f"{TABLE}.md")
    assert jobs(said).items() >= {"prepare": 1, "partition": 1, "train": 1, "table": 1}.items()
    first, shown = own_data.runs(), own_data.table()["LocalSGDM"]["mean"]
    assert len(first) == 1

    (own_data.root / "points.csv").rename(own_data.root / "moved.csv")
    described = {"file": "moved.csv", "label": "kind", "title": "Points", "licence": "free"}
    own_data.write("config/datasets/points.yaml", described)
    own_data.snakemake(f"{TABLE}.md")
    assert own_data.runs() == first

    points(own_data, 3.0, "moved.csv")
    said = own_data.snakemake(f"{TABLE}.md")
    assert jobs(said).items() >= {"prepare": 1, "partition": 1, "train": 1, "table": 1}.items()
    assert len(own_data.runs()) == 2 and own_data.runs().items() > first.items()
    assert own_data.table()["LocalSGDM"]["mean"] != shown

    points(own_data, 1.0, "moved.csv")  # back: the first run is there still
    own_data.snakemake(f"{TABLE}.md")
    assert len(own_data.runs()) == 2 and own_data.table()["LocalSGDM"]["mean"] == shown

    (own_data.root / "moved.csv").unlink()
    said = own_data.snakemake(f"{TABLE}.md", fails=True)
    assert "error: config/datasets/points.yaml: file moved.csv does not exist" in said
    assert "Traceback" not in said
