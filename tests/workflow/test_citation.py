"""CITATION.cff, .zenodo.json, CHANGELOG.md and the package say the same version and cite the papers rebuilt here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

import fedbench
from fedbench.study.configuration import load_paper, paper_keys

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
ZENODO = json.loads((ROOT / ".zenodo.json").read_text())


def test_everything_names_the_release_that_the_changelog_has_last() -> None:
    sections = re.findall(
        r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M
    )
    assert sections[0] == ("Unreleased", "")
    assert sections[1] == (fedbench.__version__, str(CITATION["date-released"]))
    assert CITATION["version"] == ZENODO["version"] == fedbench.__version__
    assert ZENODO["publication_date"] == str(CITATION["date-released"])


def test_zenodo_gets_what_citation_cff_says() -> None:
    assert ZENODO["title"] == CITATION["title"] and ZENODO["license"] == CITATION["license"]
    assert ZENODO["description"] == CITATION["abstract"] and ZENODO["keywords"] == CITATION["keywords"]
    assert [creator["name"] for creator in ZENODO["creators"]] == [
        author["name"] for author in CITATION["authors"]
    ]
    for said, paper in zip(ZENODO["references"], CITATION["references"], strict=True):
        names = ", ".join(
            f"{author['family-names']}, {author['given-names'][0]}." for author in paper["authors"]
        )
        assert said == f"{names}: {paper['title']} ({paper['year']})"


def test_the_papers_that_are_rebuilt_are_cited_with_full_names() -> None:
    rebuilt = {
        paper.title
        for paper in (load_paper(key) for key in paper_keys() if key != "check")  # beside numbers of our own
        if any(table.published for table in paper.tables.values())
    }
    assert {paper["title"] for paper in CITATION["references"]} == rebuilt
    names = [author["given-names"] for paper in CITATION["references"] for author in paper["authors"]]
    assert all(re.fullmatch(r"[A-Z][a-z]+", name) for name in names), "no initials"
