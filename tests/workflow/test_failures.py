"""Cells that diverge or crash, slips, files that are damaged."""

from __future__ import annotations

import shutil

import pytest

from projects import Project, jobs

METHOD = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"
METHODS = ("LocalSGDAM", "LocalSGDM", "LocalSGDM_RL")
CELL = "results/cells/tiny/localscgdam/Digits/p4_imratio0.1/LocalSGDM.json"


def test_cells_that_crash_or_diverge_stop_no_other_and_stay_visible(built: Project) -> None:
    """In the table, in the paper's other forms of it, and on the page."""
    shutil.rmtree(built.root / "results")
    with built.edit("config/config.yaml") as config:
        config["seeds"] = [0]
    with built.edit("config/papers/localscgdam.yaml") as paper:
        for kind, kept in (("tables", "table1"), ("figures", "figure1")):
            paper[kind] = {kept: paper[kind][kept]}
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
        "what failed is tried again, nothing else"
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
