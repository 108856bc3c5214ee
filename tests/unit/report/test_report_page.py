"""The report page: nothing is missing, nothing dangles, what went wrong says why, and commands do what they say."""

from __future__ import annotations

import base64
import gzip
import itertools
import math
import shlex
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from page_reader import Element, Page
from report_project import REDUCED, Project, localscgdam, run_result, table_of

from fedbench.commands.options import configured
from fedbench.errors import UserError
from fedbench.report import processes, tables
from fedbench.report.layout import Entry
from fedbench.report.page import build as page
from fedbench.report.page.gather import chapter
from fedbench.report.page.states import STATES
from fedbench.report.page.view import Number
from fedbench.results.collect import log_of
from fedbench.results.export import export_reproduced
from fedbench.results.frame import Compared
from fedbench.study.cells import Cell, matching
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CELL = "localscgdam/CIFAR10/p4_imratio0.1/CoDA"
OTHER = CELL.replace("p4", "p8")
ANCHOR = f"reduced/{CELL}"


@pytest.fixture
def reported(project: Project) -> Project:
    """The project with Table 1 of a paper finished and a configuration file to lay calls over."""
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    project.fill()
    return project


def read(config: Config = REDUCED) -> Page:
    return Page(page.save_page(config))


def cell(project: Project, name: str = CELL, config: Config = REDUCED) -> Cell:
    (chosen,) = matching(project.cells("localscgdam", None, config), name)
    return chosen


def logged(project: Project, text: str) -> None:
    path = project.root / "logs/train/reduced" / f"{CELL}.log"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def overview(root: Element) -> list[dict[str, int]]:
    """The rows of the overview: how many numbers of each table are in which case."""
    table = root.only("table", "overview")
    heads = [e.text for e in table.only("thead").all("th")][2:]
    rows = [row for body in table.all("tbody") for row in body.all("tr")]
    return [dict(zip(heads, [int(e.text or 0) for e in row.all("td", "n")], strict=False)) for row in rows]


def headlines(root: Element) -> Counter[str]:
    """The headlines, without those that count nothing."""
    return +Counter({e.only("span").text: int(e.only("b").text) for e in root.all("a", "card")})


def drawn(shown: Page, anchor: str = ANCHOR) -> str:
    """The texts of the picture that is shown with a cell; broken XML is an error."""
    (group,) = [e for e in shown.root.all("div", "group") if shown.cell(anchor) in e.walk()]
    kind, _, content = group.only("img")["src"].partition(",")
    assert kind == "data:image/svg+xml"
    return " ".join(text for text in ElementTree.fromstring(unquote(content)).itertext() if text.strip())


def test_every_link_leads_somewhere_and_nothing_comes_from_outside(reported: Project) -> None:
    tables.save_table(Plan(REDUCED), "table1")
    shown = read()
    ids = Counter(e["id"] for e in shown.root.walk() if "id" in e.attributes)
    links = [e["href"] for e in shown.root.all("a")]
    inner = {unquote(link[1:]) for link in links if link.startswith("#")}
    assert max(ids.values()) == 1 and inner <= {*ids}
    assert {link.partition(":")[0] for link in links if not link.startswith("#")} == {"data"}
    outer = [e[key] for e in shown.root.walk() for key in ("src", "srcset", "action") if key in e.attributes]
    assert outer and all(source.startswith("data:") for source in outer)
    assert [e["href"] for e in shown.root.all("link")] == ["data:,"]
    assert "url(" not in shown.root.only("style").text and "@import" not in shown.root.only("style").text
    (link,) = shown.root.only("article", id="reduced/localscgdam/table1").only("p", "files").all("a")
    assert link["download"] == "localscgdam-table1.csv.gz"
    content = gzip.decompress(base64.b64decode(link["href"].partition(",")[2]))
    assert content == (reported.root / "tables/localscgdam/table1.csv").read_bytes()


def test_a_published_number_counts_once_by_the_scale_nearest_to_the_paper_that_has_it(
    reported: Project,
) -> None:
    """And a run counts in its own scale: another scale that shows it as shipped does not count it again."""
    reported.finish(cell(reported), [0.889, 0.890, 0.891])
    verdicts, root = Counter(table_of().rows["verdict"]), read().root
    alone, (counts,) = headlines(root), overview(root)
    assert (
        alone.total() == sum(counts.values()) == 90 and alone["not in scale"] == counts["not in scale"] == 60
    )
    assert (
        counts["match"] == verdicts["matches"] > 0 and counts["inconclusive"] == verdicts["inconclusive"] > 0
    )
    assert counts["differ"] == verdicts["above published"] + verdicts["below published"] > 0
    paper = cell(reported, CELL, Config(scale="paper"))
    reported.finish(paper, [0.1] * len(paper.runs))
    export_reproduced(Plan(REDUCED), "table1")
    shown = read().root
    moved = alone - Counter(["match", *["not in scale"] * 60])
    assert headlines(shown) == moved + Counter(["differ", *["not run"] * 60])
    listed = shown.only("table", id="all").only("tbody").all("tr")
    once = [row for row in listed if "data-once" in row.attributes]
    assert len(once) == 90, "a card leads to the rows it counts"
    of_cell = [row for row in once if row.only("th").all("a")[0]["href"].endswith(f"/{CELL}")]
    assert [row["data-state"] for row in of_cell] == ["below published"]
    counts = [count for row in overview(shown) for name, count in row.items() if name != "not in scale"]
    assert len(listed) == sum(counts)


def test_a_number_stands_beside_the_published_one_and_opens_its_cell(reported: Project) -> None:
    reported.fill("localscgdam", "figure1")
    reported.finish(cell(reported), [0.8, 0.81, 0.82])
    shown = read()
    table = shown.root.only("article", id="reduced/localscgdam/table1")
    ours = table.only("a", "tag", href=f"#{ANCHOR}")
    assert ours.text == "0.810 ±0.010" and "below" in ours["class"].split()
    row = next(r for r in table.all("tr") if ours in r.walk())
    cells = [e.text for e in row.all("td")]
    at = cells.index(ours.text)
    assert cells[at : at + 3] == ["0.810 ±0.010", "0.890", "−0.080 ↓"] and row.only("th").text == "■ CoDA"
    values = [e.attributes.get("data-value") for e in shown.rows()[ANCHOR, "test AUC"].all("td")[4:8]]
    assert [float(v) for v in values if v] == pytest.approx([0.81, 0.01, 0.89, -0.08])
    runs = shown.cell(ANCHOR).only("table", "runs").only("tbody").all("tr")
    told = [["0", "finished", "0.8000"], ["1", "finished", "0.8100"], ["2", "finished", "0.8200"]]
    assert [run.text.split()[:3] for run in runs] == told
    configuration = shown.cell(ANCHOR).all("div", "configuration")[0].all("tr")
    pairs = {pair.only("th").text: pair.only("td").text for pair in configuration}
    expected = {"imratio": "0.1", "period": "4", "clients": "4", "dataset": "cifar10", "name": "mlp"}
    assert expected.items() <= pairs.items() and pairs["algorithm"] == cell(reported).runs[0].method
    assert not {"None", "null", "[]"} & set(pairs.values())
    words = drawn(shown)
    methods = [*localscgdam()["methods"]]
    assert all(word in words for word in (*methods, "test AUC", "published")), "the curves of all methods"
    said = shown.root.all("dl", "pairs")[0].text
    assert "0123456789ab" in said and "2 cores" in said and "numpy 2.4" in said
    assert f"training {round(1.5 * 3 * 30 / 60)} min in all" in said


def test_failed_diverged_and_incomplete_cells_say_why_once_and_how_to_run_them(reported: Project) -> None:
    """Neither an endless value of a curve nor a damaged curve stops the page."""
    bad, part, damaged = (
        cell(reported, OTHER.replace("CoDA", name)) for name in ("CoDA", "LocalSGDM", "LocalSGDAM")
    )
    (reported.root / cell(reported).path).unlink()
    long = "".join(f"line {i}\n" for i in range(50))
    logged(reported, f"{long}\x1b[31mValueError: <b>no</b> & such\x1b[0m\n")
    endless = {"round": range(4), "iteration": range(4), "test_auc": [0.5, np.nan, np.inf, 0.7]}
    reported.write_curve(damaged.runs[0].key, endless)
    reported.write_curve(bad.runs[0].key, endless)
    runs = [run_result(r.seed, r.key, {"test_auc": 0.8}) for r in bad.runs]
    runs[1] |= {"status": "diverged", "reason": "alpha became infinite in round 3", "metrics": {}}
    reported.write(bad, runs)
    reported.write(part, [run_result(r.seed, r.key, {"test_auc": 0.8}) for r in part.runs[:2]])
    shown = read()
    section = shown.cell(ANCHOR)
    said = section.all("pre")[0].text
    assert said.endswith("line 49 ValueError: <b>no</b> & such") and "line 20" not in said
    assert "! failed" in section.text and f"Read from: logs/train/reduced/{CELL}.log" in section.text
    assert section.only("pre", "command").text == f"fedbench run {CELL} --scale reduced"
    fine = cell(reported, CELL.replace("p4", "p16"))
    assert f"Read from: {fine.path}" in shown.cell(f"reduced/{fine.name}").text
    table = shown.root.only("article", id="reduced/localscgdam/table1")
    assert table.only("a", "tag", href=f"#{ANCHOR}").text == "failed"
    assert shown.rows()[f"reduced/{bad.name}", "test AUC"]["data-state"] == "diverged"
    (reason,) = shown.cell(f"reduced/{bad.name}").all("p", "reason")
    assert reason.text.count("alpha became infinite in round 3") == 1
    assert "2 of 3 seeds are done" in shown.cell(f"reduced/{part.name}").only("p", "reason").text
    assert "CoDA: diverged in 1 of 3 seeds" in drawn(shown, f"reduced/{bad.name}")
    trouble = shown.root.only("section", id="trouble").text
    assert CELL in trouble and "no</b> & such" in trouble
    assert all(f"{state} 1 cell" in trouble for state in ("! failed", "✕ diverged", "◐ incomplete"))


@pytest.mark.parametrize(
    ("log", "state"),
    [
        ("  seed 0: finished test_auc 0.8\n  seed 1: round 3/25, mean error: 0.5\n", "interrupted"),
        ("  seed 0: round 2/25\r  seed 0: finished\n  seed 1: diverged\n  seed 2: finished\n", ""),
        ("  seed 0: finished test_auc 0.8\nslurmstepd: error: ... Killed\n", "failed"),
        ("Traceback (most recent call last):\n  File x\nRuntimeError: boom\n", "failed"),
    ],
)
def test_what_a_log_says_of_a_cell_without_results(project: Project, log: str, state: str) -> None:
    assert log_of(cell(project)) is None
    logged(project, log)
    read_log = log_of(cell(project))
    assert read_log is not None and read_log.says == state
    project.finish(cell(project), [0.5] * 3)
    read_log = log_of(cell(project))
    assert read_log is not None and read_log.says == ""


def test_a_log_of_old_does_not_speak_for_a_result_that_is_there(reported: Project) -> None:
    stale = cell(reported)
    reported.write(stale, [run_result(r.seed, f"old{r.seed}", {"test_auc": 0.8}) for r in stale.runs])
    reported.forget(stale.runs)
    logged(reported, "error: an error of last week\n")
    shown = read()
    assert shown.rows()[ANCHOR, "test AUC"]["data-state"] == "not run"
    said = shown.cell(ANCHOR).text
    assert "other hyper-parameters" in said and "last week" not in said


def test_other_papers_scales_and_data_sets_with_results_are_shown(reported: Project) -> None:
    """As each is shown alone; what is wrong with one is said."""
    demo = Config(scale="demo", datasets=["Digits", "STL10"])
    added = cell(reported, "localscgdam/STL10/p4_imratio0.1/CoDA", demo)
    reported.finish(added, [0.8])
    climb = REDUCED.model_copy(update={"paper": "climb"})
    (clients,) = matching(
        reported.cells("climb", "table2", climb), "climb/MNIST/rho10_n_minority1_alpha0.1/CLIMB"
    )
    reported.finish(clients, [0.8] * 3, "test_minority_accuracy", test_overall_accuracy=0.9)
    saved = page.save_page(REDUCED)
    shown = Page(saved)
    chapters = [e["id"] for e in shown.root.all("section", "chapter")]
    assert chapters == ["reduced/localscgdam", "demo/localscgdam", "reduced/climb"]
    judged = [e["id"] for e in shown.root.all("article") if e["id"].startswith("claims/")]
    assert judged == ["claims/localscgdam"], "once, though it has two chapters"
    assert shown.rows()[f"demo/{added.name}", "test AUC"]["data-state"] == "matches (one seed)"
    command = shown.cell(f"demo/{added.name}").only("pre", "command").text
    assert "--set 'datasets=[\"STL10\"]'" in command
    name = "reduced/climb/MNIST/rho10_n_minority1_alpha0.1/CLIMB"
    two = [metric for anchor, metric in shown.rows() if anchor == name]
    assert sorted(two) == ["minority accuracy", "overall accuracy"]
    studies = (("localscgdam", ["reduced", "demo"]), ("climb", ["reduced"]))
    alone = [page.texts_of(REDUCED, study) for study in studies]
    assert saved.read_text() == page.render([*itertools.chain(*alone)], REDUCED)
    numbers = Path("reproduced/reduced/climb.csv")
    numbers.parent.mkdir(parents=True, exist_ok=True)
    numbers.write_text("nonsense\n1,2\n")
    with pytest.raises(UserError, match=str(numbers)):
        page.save_page(REDUCED)


def test_a_mistake_of_the_call_is_said_before_the_work_begins(
    reported: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "studies", lambda config: {"localscgdam": ["reduced"], "climb": ["reduced"]})
    monkeypatch.setattr(processes, "ProcessPoolExecutor", lambda *how, **more: pytest.fail("it began"))
    with pytest.raises(UserError, match="unknown dataset of localscgdam 'MNIST'"):
        page.save_page(REDUCED.model_copy(update={"datasets": ["MNIST"]}))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"set": {"train.iterations": 3, "params.lr": 0.5}},
        {"datasets": ["CIFAR10"], "seeds": [4, 7]},
        {"data_dir": "d x"},
    ],
)
def test_the_command_of_a_cell_trains_exactly_that_cell(reported: Project, given: dict[str, object]) -> None:
    config = load_config(overrides={"scale": "reduced", **given})
    program, verb, pattern, *options = shlex.split(read(config).cell(ANCHOR).only("pre", "command").text)
    assert (program, verb) == ("fedbench", "run")
    pairs = list(zip(options[::2], options[1::2], strict=True))
    sets = [value for name, value in pairs if name == "--set"]
    asked = configured(dict(pairs)["--scale"], pattern.split("/")[0], sets)
    (chosen,) = matching(Plan(asked, asked.paper).cells(), pattern)
    assert chosen == cell(reported, CELL, config)
    assert (asked.set, asked.data_dir) == (config.set, config.data_dir)


def test_nothing_run_is_a_page_too_with_the_same_bytes(project: Project) -> None:
    (project.root / "config/config.yaml").write_text("scale: paper\n")
    config = Config(scale="paper")
    shown, before = read(config), page.save_page(config).read_bytes()
    assert not shown.root.all("section", id="trouble")
    assert {row["data-state"] for row in shown.rows().values()} == {"not run"}
    assert "nothing run here" in shown.root.all("dl", "pairs")[0].text
    assert page.save_page(config).read_bytes() == before


def test_what_was_not_trained_here_is_marked_in_the_overview_and_the_claims(reported: Project) -> None:
    export_reproduced(Plan(REDUCED), "table1")
    (reported.root / cell(reported).path).unlink()
    shown = read().root
    rows = shown.only("table", "overview").only("tbody").all("tr")
    assert [row.only("th").text for row in rows] == ["localscgdam Table 1 ‡ 1"]
    said = [tag.text for tag in shown.only("article", id="claims/localscgdam").all("span", "tag")]
    assert said[1].startswith("undecided") and said[1].endswith("‡") and said[0] == said[2] == "not run"


def test_the_training_time_of_a_number_is_never_the_mean_of_reference_results() -> None:
    """That of cells is a sum over seeds."""
    item = Compared(verdict="matches", difference=0.0, seconds=20.0, n_seeds=3)
    number = Number("table1", Entry("0.900", item=item), STATES["matches"], "", cell=None)
    assert math.isnan(number.seconds)


def test_a_number_is_listed_with_its_table_and_with_a_figure_where_no_table_shows_it(
    reported: Project,
) -> None:
    paper = localscgdam()
    paper["figures"]["figure1"]["metrics"] = ["test_auc", "test_ap"]
    reported.save_paper("localscgdam", paper)
    config = REDUCED.model_copy(update={"datasets": ["CATvsDOG"]})
    for target in ("figure1", "figure4"):
        reported.fill("localscgdam", target, config, ("test_auc", "test_ap"))
    listed = {(n.target, n.item.metric) for n in chapter(Plan(config)).listed if n.target in paper["figures"]}
    assert listed == {("figure1", "test_ap"), ("figure4", "test_auc")}
