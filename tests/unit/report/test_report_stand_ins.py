"""Data that stand in for the paper's show that the program works: no output has a verdict on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from report_project import METHODS, Project, localscgdam

from fedbench.report import claims, tables
from fedbench.report.figures import build as figures
from fedbench.report.page import build as page
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

VERDICTS = re.compile(
    r"\b(match(es)?|(above|below) published|inconclusive|differs?|supported|contradicted|undecided|reproduces?)\b|[≈↑↓]"
)
CONFIG = Config(scale="demo", seeds=[0, 1, 2])
SAYS = "LocalSCGDAM leads"


@pytest.fixture
def stood_in(project: Project) -> Project:
    """Digits alone has run, with the method of the claim far ahead."""
    paper = localscgdam()
    paper["claims"][0]["says"] = SAYS
    project.save_paper("localscgdam", paper)
    (project.root / "config/config.yaml").write_text("scale: demo\n")
    project.fill("localscgdam", "table1", CONFIG)
    for cell in project.cells("localscgdam", "table1", CONFIG):
        project.finish(cell, [0.98 if cell.method == METHODS[0] else 0.9] * 3)
    return project


def outputs() -> Iterator[tuple[str, str]]:
    """Everything that shows numbers of the paper, by name."""
    table = tables.table_of(Plan(CONFIG), "table1")
    for form, text in table.forms().items():
        yield f"table1.{form}", text
    yield "fedbench show", table.terminal()
    findings = claims.claim_table(Plan(CONFIG))
    for form, text in findings.forms().items():
        yield f"claims.{form}", text
    yield "fedbench claims", findings.terminal()
    drawing = figures.drawing_of(Plan(CONFIG), "figure1")
    yield "figure1", f"{drawing.title} {drawing.words}"


def test_no_output_has_a_verdict_word_on_a_stand_in(stood_in: Project) -> None:
    for name, text in outputs():
        # the CSV's columns
        body = "\n".join(line for line in text.splitlines() if not line.startswith("paper,"))
        assert "Digits" in body or name == "claims.json", name
        match = VERDICTS.search(re.sub(r'"form": "\w+"|,better,', "", body))
        assert match is None, f"{name}: {body[max(0, match.start() - 60) : match.end() + 20]!r}"


def test_the_page_has_none_either(stood_in: Project) -> None:
    text = page.save_page(CONFIG).read_text()
    states = set(re.findall(r'<tr data-state="([^"]+)"', text))
    assert states == {"no reference", "not run"}
    tags = re.findall(r'<td data-label="demo"><span class="([^"]+)">([^<]+)</span>', text)
    assert tags == [("tag absent", "Digits, no verdict: shown in 3 of 3")]
    body = text.partition("</details>")[2].partition("<dialog")[0]  # behind the legend
    shown = re.sub(r"<[^>]*>", " ", body.partition("<h3>This page")[0])
    assert VERDICTS.search(shown) is None


def test_a_claim_about_a_table_of_our_own_data_has_no_verdict(stood_in: Project) -> None:
    """Its places are those of data that the paper does not have, named by its own table."""
    paper = localscgdam()
    paper["claims"][0]["says"] = SAYS
    paper["tables"]["table1"] |= {"datasets": ["Digits"], "published": None}
    stood_in.save_paper("localscgdam", paper)
    (finding,) = claims.claim_table(Plan(CONFIG)).findings
    demo = next(at for at in finding.scales if at.scale == "demo")
    assert (demo.kind, demo.stand_in, demo.words) == (
        "stand-in",
        ("Digits",),
        "Digits, no verdict: shown in 3 of 3",
    )
    paper["claims"][0]["own_data"] = True  # by decision: then with the name of the data
    stood_in.save_paper("localscgdam", paper)
    (finding,) = claims.claim_table(Plan(CONFIG)).findings
    demo = next(at for at in finding.scales if at.scale == "demo")
    assert demo.stand_in == () and demo.words.startswith(demo.kind) and "Digits" in demo.words


def test_a_claim_on_one_dataset_shows_no_stand_in(stood_in: Project) -> None:
    paper = localscgdam()
    paper["claims"][0]["only"] = {"dataset": "CIFAR10"}
    stood_in.save_paper("localscgdam", paper)
    (finding,) = claims.claim_table(Plan(CONFIG)).findings
    assert not any(at.ran or at.stand_in for at in finding.scales)


def test_a_verdict_is_found_where_there_is_one(project: Project, reduced: Config) -> None:
    """The words above are those in use: on the paper's own data they are there."""
    project.fill("localscgdam", "table1", reduced)
    said = tables.table_of(Plan(reduced), "table1").terminal()
    assert VERDICTS.search(said)
    assert "supported" in json.dumps(claims.RULES).lower()


def test_published_numbers_of_no_dataset_are_not_held_against_a_stand_in(stood_in: Project) -> None:
    """A file of one's own without the column ``dataset`` fits every dataset of the paper, and no other."""
    stood_in.change(tables={"table1": {"published": "mine.csv"}})
    (stood_in.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.9\n")
    rows = tables.table_of(Plan(CONFIG), "table1").rows
    kinds = rows[rows["method"] == "CoDA"].groupby("dataset")["verdict"].unique()
    assert list(kinds["Digits"]) == ["no reference"]
    assert (
        rows.loc[(rows["dataset"] == "CIFAR10") & (rows["method"] == "CoDA"), "published_mean"].iloc[0]
        == "0.9"
    )
