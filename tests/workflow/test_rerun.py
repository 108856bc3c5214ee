"""What a call builds and what it leaves alone: own data, cells that fail, files that are damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from projects import OWN, TABLE, Project, jobs

METHOD = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"
METHODS = ("LocalSGDAM", "LocalSGDM", "LocalSGDM_RL")
CELL = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM.json"


def keep_two(paper: Any) -> None:
    for kind, kept in (("tables", "table1"), ("figures", "figure1")):
        paper[kind] = {kept: paper[kind][kept]}


def test_a_table_from_nothing(once_built: tuple[Project, str]) -> None:
    project, said = once_built
    assert jobs(said) == {"prepare": 1, "partition": 2, "train": 2, "table": 1, "own_table": 1}
    rows = project.table()
    assert set(rows) == {"LocalSGDAM", "LocalSGDM"}
    for row in rows.values():
        assert (row["status"], row["n_seeds"], row["scale"]) == ("finished", "2", "tiny")
        assert 0 < float(row["mean"]) <= 1
    for path in OWN:
        same = (project.root / TABLE).with_name(Path(path).name)
        assert (project.root / path).read_bytes() == same.read_bytes()


def test_a_changed_learning_rate_and_another_seed_train_what_they_concern_only(built: Project) -> None:
    before = built.runs()
    with built.edit("config/papers/localscgdam.yaml") as paper:
        paper["methods"]["LocalSGDM"]["params"]["lr"] = 0.07
    said = built.snakemake("tables/table1.tex", "--config", "seeds=0,1,2")
    assert jobs(said) == {"partition": 1, "train": 2, "table": 1, "own_table": 1}
    after = built.runs()
    assert {key: after[key] for key in before} == before
    new = sorted(method for key, (method, _) in after.items() if key not in before)
    assert new == ["local_sgdam 2", "local_sgdm 0", "local_sgdm 1", "local_sgdm 2"]
    assert {row["n_seeds"] for row in built.table().values()} == {"3"}


def test_what_changes_no_number_trains_nothing(built: Project) -> None:
    given, before = ("device=auto", "mirror=.", "client_chunk=2"), (built.root / OWN[2]).read_bytes()
    assert "Nothing to be done" in built.snakemake("tables/table1.tex", "--config", *given)
    shutil.rmtree(built.root / "tables/localscgdam")
    (built.root / "tables/table1.tex").unlink()
    assert jobs(built.snakemake("tables/table1.tex")) == {"table": 1, "own_table": 1}
    assert (built.root / "tables/table1.md").read_bytes() == before

    for path in ("config/papers/localscgdam.yaml", "workflow/rules/train.smk", "data_prep/partition.py"):
        with (built.root / path).open("a") as file:
            file.write("\n# a remark\n")
    said = built.snakemake("tables/table1.tex", "--dry-run")
    assert "rule table:" in said and "rule train:" not in said


def test_a_figure_and_a_typeset_table_from_the_same_runs(built: Project) -> None:
    if not (shutil.which("latexmk") and shutil.which("pdflatex")):
        pytest.skip("no LaTeX")
    said = built.snakemake("tables/table1.pdf", "figures/figure1.pdf")
    assert jobs(said) == {"typeset": 1, "own_pdf": 1, "figure": 1, "own_figure": 1}
    for path in ("tables/table1.pdf", "figures/figure1.pdf"):
        assert (built.root / path).read_bytes().startswith(b"%PDF")


def test_the_report_page_follows_what_it_shows(built: Project) -> None:
    with built.edit("config/papers/localscgdam.yaml") as paper:
        keep_two(paper)
    page = built.root / "report.html"
    assert jobs(built.snakemake("report.html")) == {"page": 1}, "it draws tables and figures itself"
    for anchor in ("tiny/localscgdam/table1", "tiny/localscgdam/figure1", f"tiny/{METHOD}"):
        assert f'id="{anchor}"' in page.read_text()
    assert "Nothing to be done" in built.snakemake("report.html")

    other = built.root / f"results/cells/demo/{METHOD}.json"
    other.parent.mkdir(parents=True)
    shutil.copy(built.root / f"results/cells/tiny/{METHOD}.json", other)
    assert jobs(built.snakemake("report.html")) == {"page": 1}, "results of another scale are shown too"
    assert 'id="demo/localscgdam"' in page.read_text()
    for changed, key in (("papers/localscgdam", "title"), ("scales/tiny", "description")):
        with built.edit(f"config/{changed}.yaml") as content:
            content[key] = "Another title"
        assert jobs(built.snakemake("report.html")) == {"page": 1}, changed
    assert "Another title" in page.read_text()


def test_cells_that_crash_or_diverge_stop_no_other_and_stay_visible(built: Project) -> None:
    """In the table, in the paper's other forms of it, and on the page."""
    shutil.rmtree(built.root / "results")
    with built.edit("config/config.yaml") as config:
        config["seeds"] = [0]
    with built.edit("config/papers/localscgdam.yaml") as paper:
        keep_two(paper)
        paper["tables"]["table1"]["methods"].append("LocalSGDM_RL")
        paper["methods"]["LocalSGDM_RL"]["params"]["lr"] = 1e30
        crash = {"participation": {"rule": "random", "clients": 2, "groups": 7}}
        paper["methods"]["LocalSGDM"]["train"] = crash
    said = built.snakemake("tables/table1.tex", "report.html", fails=True)
    assert f"not finished: {CELL}" in said
    assert "not a whole number of cycles" in said, "the last lines of the log"
    assert f"run it alone: fedbench run {METHOD} --scale tiny" in said
    rows = built.table()
    assert [rows[method]["status"] for method in METHODS] == ["finished", "failed", "diverged"]
    assert "not a whole number of cycles" in rows["LocalSGDM"]["reason"]
    for form in ("md", "tex"):
        said = (built.root / f"tables/table1.{form}").read_text()
        assert "Failed: Digits, LocalSGDM: " in said and "not a whole number of cycles" in said
        assert "diverged" in said
    page = (built.root / "report.html").read_text()
    assert "not a whole number of cycles" in page, "the last lines of the log"
    assert f"fedbench run {METHOD} --scale tiny</pre>" in page

    assert jobs(built.snakemake("tables/table1.tex", fails=True)) == {}, (
        "nothing but what failed is tried again"
    )
    with built.edit("config/papers/localscgdam.yaml") as paper:
        del paper["methods"]["LocalSGDM"]["train"]
    done = jobs(built.snakemake("tables/table1.tex", "report.html"))
    assert done == {"train": 1, "table": 1, "own_table": 1, "page": 1}
    assert built.table()["LocalSGDM"]["status"] == "finished"
    assert "not a whole number of cycles" not in (built.root / "report.html").read_text()


@pytest.mark.parametrize("name", ["digits/x_train.npy", "digits.json"])
def test_a_damaged_prepared_file_is_made_again_and_named(built: Project, name: str) -> None:
    path = built.root / f"data/prepared/{name}"
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    shutil.rmtree(built.root / "data/partitions")
    said = built.snakemake("tables/table1.tex")
    assert f"data/prepared/{name}" in said and "made again" in said
    assert path.read_bytes() == sound and jobs(said)["prepare"] == 1
    assert jobs(built.snakemake("tables/table1.tex")) == {}


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
