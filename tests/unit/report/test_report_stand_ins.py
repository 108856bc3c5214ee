"""Data that stand in for the paper's show that the program works: no output has a verdict on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from report_project import METHODS, Project, localscgdam, table_of

from fedbench.report import claims
from fedbench.report.figures import build as figures
from fedbench.report.page import build as page
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

VERDICTS = re.compile(
    r"\b(match(es)?|(above|below) published|inconclusive|differs?|supported|contradicted|undecided|reproduces?)\b|[≈↑↓]"
)
CONFIG = Config(scale="demo", seeds=[0, 1, 2])
SHOWN = "Digits, no verdict: shown in 3 of 3"


@pytest.fixture
def stood_in(project: Project) -> Project:
    """Digits alone has run, with the method of the claim far ahead."""
    claim(project)
    (project.root / "config/config.yaml").write_text("scale: demo\n")
    project.fill("localscgdam", "table1", CONFIG)
    project.finish_each(CONFIG, lambda cell: [0.98 if cell.method == METHODS[0] else 0.9] * 3)
    return project


def claim(project: Project, table: dict[str, Any] | None = None, **of_claim: Any) -> None:
    """Write the paper with other keys of its table and of its claim."""
    paper = localscgdam()
    paper["claims"][0] |= {"says": "LocalSCGDAM leads", **of_claim}
    paper["tables"]["table1"] |= table or {}
    project.save_paper("localscgdam", paper)


def outputs() -> Iterator[tuple[str, str]]:
    """Everything that shows numbers of the paper, by name."""
    table, findings = table_of(CONFIG), claims.claim_table(Plan(CONFIG))
    drawing = figures.drawing_of(Plan(CONFIG), "figure1")
    yield from {**table.forms(), "fedbench show": table.terminal()}.items()
    yield from {**findings.forms(), "fedbench claims": findings.terminal()}.items()
    yield "figure1", f"{drawing.title} {drawing.words}"


def test_no_output_has_a_verdict_word_on_a_stand_in(stood_in: Project) -> None:
    for name, text in outputs():
        # the CSV's columns
        body = "\n".join(line for line in text.splitlines() if not line.startswith("paper,"))
        assert "Digits" in body or name == "json", name
        match = VERDICTS.search(re.sub(r'"form": "\w+"|,better,', "", body))
        assert match is None, f"{name}: {body[max(0, match.start() - 60) : match.end() + 20]!r}"
    text = page.save_page(CONFIG).read_text()
    assert set(re.findall(r'<tr data-state="([^"]+)"', text)) == {"no reference", "not run"}
    tags = re.findall(r'<td data-label="demo"><span class="([^"]+)">([^<]+)</span>', text)
    assert tags == [("tag absent", SHOWN)]
    body = text.partition("</details>")[2].partition("<dialog")[0]  # behind the legend
    assert VERDICTS.search(re.sub(r"<[^>]*>", " ", body.partition("<h3>This page")[0])) is None
    real = Config(scale="reduced")
    stood_in.fill("localscgdam", "table1", real)
    assert VERDICTS.search(table_of(real).terminal()), "the words are those in use"


@pytest.mark.parametrize(
    ("table", "of_claim", "words"),
    [
        # places of data that the paper does not have, named by its own table; by decision with the name of the data
        ({"datasets": ["Digits"], "published": None}, {}, SHOWN),
        ({"datasets": ["Digits"], "published": None}, {"own_data": True}, "supported on Digits: won 3"),
        ({}, {"only": {"dataset": "CIFAR10"}}, "not run"),
    ],
)
def test_whose_data_a_claim_is_about_decides(
    stood_in: Project, table: dict[str, Any], of_claim: dict[str, Any], words: str
) -> None:
    claim(stood_in, table, **of_claim)
    (finding,) = claims.claim_table(Plan(CONFIG)).findings
    demo = next(at for at in finding.scales if at.scale == "demo")
    assert demo.words.startswith(words) and demo.stand_in == ("Digits",) * (words == SHOWN)


def test_published_numbers_of_no_dataset_are_not_held_against_a_stand_in(stood_in: Project) -> None:
    """A file of one's own without the column ``dataset`` fits every dataset of the paper, and no other."""
    stood_in.change(tables={"table1": {"published": "mine.csv"}})
    (stood_in.root / "mine.csv").write_text("method,metric,mean\nCoDA,test_auc,0.9\n")
    rows = table_of(CONFIG).rows.query("method == 'CoDA'").groupby("dataset")
    assert list(rows["verdict"].unique()["Digits"]) == ["no reference"]
    assert list(rows["published_mean"].unique()["CIFAR10"]) == ["0.9"]
