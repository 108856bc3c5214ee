"""The report page as a target: built after what it shows."""

from __future__ import annotations

import shutil

import pytest

from projects import Project, jobs

METHOD = "localscgdam/Digits/p4_imratio0.1/LocalSGDM"


@pytest.fixture
def small(built: Project) -> Project:
    """The built project with one table and one figure of the same two cells."""
    with built.edit("config/papers/localscgdam.yaml") as paper:
        for kind, kept in (("tables", "table1"), ("figures", "figure1")):
            paper[kind] = {kept: paper[kind][kept]}
    return built


def test_the_page_follows_what_it_shows(small: Project) -> None:
    assert jobs(small.snakemake("report.html")) == {"page": 1}, "it draws tables and figures itself"
    page = (small.root / "report.html").read_text()
    for anchor in ("tiny/localscgdam/table1", "tiny/localscgdam/figure1", f"tiny/{METHOD}"):
        assert f'id="{anchor}"' in page
    assert "Nothing to be done" in small.snakemake("report.html")

    cell = f"localscgdam/{METHOD.partition('/')[2]}.json"
    (small.root / "results/cells/demo" / cell).parent.mkdir(parents=True)
    shutil.copy(small.root / "results/cells/tiny" / cell, small.root / "results/cells/demo" / cell)
    assert jobs(small.snakemake("report.html")) == {"page": 1}, "results of another scale are shown too"
    assert 'id="demo/localscgdam"' in (small.root / "report.html").read_text()

    for changed in ("config/papers/localscgdam.yaml", "config/scales/tiny.yaml"):
        with small.edit(changed) as content:
            content["title" if "papers" in changed else "description"] = "Another title"
        assert jobs(small.snakemake("report.html")) == {"page": 1}, changed
    assert "Another title" in (small.root / "report.html").read_text()
