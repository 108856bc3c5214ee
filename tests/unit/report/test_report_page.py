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
from report_project import Project, localscgdam, run_result

from fedbench.commands.options import configured
from fedbench.errors import UserError
from fedbench.report import processes, tables
from fedbench.report.page import build as page
from fedbench.report.page.gather import chapter
from fedbench.study.cells import Cell, matching
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CELL = "localscgdam/CIFAR10/p4_imratio0.1/CoDA"
ANCHOR = f"reduced/{CELL}"


@pytest.fixture
def reported(project: Project, reduced: Config) -> Project:
    """The project with Table 1 of a paper finished and a configuration file to lay calls over."""
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    project.fill("localscgdam", "table1", reduced)
    return project


def read(project: Project, config: Config | None = None) -> Page:
    """Build the page and read it."""
    return Page(page.save_page(config or Config(scale="reduced")))


def cell(project: Project, name: str, config: Config | None = None) -> Cell:
    """The cell of that name."""
    (chosen,) = matching(project.cells("localscgdam", None, config or Config(scale="reduced")), name)
    return chosen


def test_every_link_leads_somewhere_and_nothing_comes_from_outside(reported: Project) -> None:
    shown = read(reported)
    ids = Counter(e["id"] for e in shown.root.walk() if "id" in e.attributes)
    assert max(ids.values()) == 1
    links = [e["href"] for e in shown.root.all("a")]
    inner = {unquote(link[1:]) for link in links if link.startswith("#")}
    assert inner - set(ids) == set()
    others = {link.partition(":")[0] for link in links if not link.startswith("#")}
    assert others == {"data"}
    sources = [
        e[name] for e in shown.root.walk() for name in ("src", "srcset", "action") if name in e.attributes
    ]
    assert all(source.startswith("data:") for source in sources) and sources
    assert [e["href"] for e in shown.root.all("link")] == ["data:,"]
    assert "url(" not in shown.root.only("style").text and "@import" not in shown.root.only("style").text


def test_the_same_results_give_the_same_bytes(reported: Project) -> None:
    first = page.save_page(Config(scale="reduced")).read_bytes()
    assert page.save_page(Config(scale="reduced")).read_bytes() == first


def test_the_overview_counts_what_the_table_says(reported: Project) -> None:
    config = Config(scale="reduced")
    reported.finish(cell(reported, CELL), [0.889, 0.890, 0.891])
    rows = tables.table_of(Plan(config), "table1").rows
    verdicts = Counter(rows["verdict"])
    (counts,) = overview(read(reported).root)
    assert counts["match"] == verdicts["matches"] > 0
    assert counts["differ"] == verdicts["above published"] + verdicts["below published"] > 0
    assert counts["inconclusive"] == verdicts["inconclusive"] > 0
    assert counts["not in scale"] == 60
    assert sum(counts.values()) == len(rows)


def overview(root: Element) -> list[dict[str, int]]:
    """The rows of the overview: how many numbers of each table are in which case."""
    table = root.only("table", "overview")
    heads = [e.text for e in table.only("thead").all("th")][2:]
    rows = [row for body in table.all("tbody") for row in body.all("tr")]
    return [dict(zip(heads, [int(e.text or 0) for e in row.all("td", "n")], strict=False)) for row in rows]


def headlines(root: Element) -> dict[str, int]:
    """The headlines, without those that count nothing."""
    cards = {e.only("span").text: int(e.only("b").text) for e in root.all("a", "card")}
    return {name: count for name, count in cards.items() if count}


def test_a_published_number_counts_once_by_the_scale_nearest_to_the_paper_that_has_it(
    reported: Project,
) -> None:
    """And a run counts in its own scale: another scale that shows it as shipped does not count it again."""
    from fedbench.results.export import export_reproduced

    reported.finish(cell(reported, CELL), [0.889, 0.890, 0.891])
    alone = headlines(read(reported).root)
    assert sum(alone.values()) == 90 and alone["not in scale"] == 60
    paper = cell(reported, CELL, Config(scale="paper"))
    reported.finish(paper, [0.1] * len(paper.runs))
    export_reproduced(Plan(Config(scale="reduced")), "table1")
    shown = read(reported).root
    after = headlines(shown)
    moved = Counter(alone) - Counter(["match", *["not in scale"] * 60])
    assert after == moved + Counter(["differ", *["not run"] * 60])
    listed = shown.only("table", id="all").only("tbody").all("tr")
    once = [row for row in listed if "data-once" in row.attributes]
    assert len(once) == 90, "a card leads to the rows it counts"
    of_cell = [row for row in once if row.only("th").all("a")[0]["href"].endswith(f"/{CELL}")]
    assert [row["data-state"] for row in of_cell] == ["below published"]
    assert len(listed) == sum(
        count for row in overview(shown) for name, count in row.items() if name != "not in scale"
    )


def test_a_number_stands_beside_the_published_one_and_opens_its_cell(reported: Project) -> None:
    reported.finish(cell(reported, CELL), [0.8, 0.81, 0.82])
    shown = read(reported)
    table = shown.root.only("article", id="reduced/localscgdam/table1")
    ours = table.only("a", "tag", href=f"#{ANCHOR}")
    assert ours.text == "0.810 ±0.010" and "below" in ours["class"].split()
    row = next(r for r in table.all("tr") if ours in r.walk())
    cells = [e.text for e in row.all("td")]
    at = cells.index("0.810 ±0.010")
    assert cells[at : at + 3] == ["0.810 ±0.010", "0.890", "−0.080 ↓"]
    assert row.only("th").text == "■ CoDA"
    entry = shown.rows()[ANCHOR, "test AUC"]
    values = [e.attributes.get("data-value") for e in entry.all("td")[4:8]]
    assert [float(v) for v in values if v] == pytest.approx([0.81, 0.01, 0.89, -0.08])
    section = shown.cell(ANCHOR)
    assert [run.text.split()[:3] for run in section.only("table", "runs").only("tbody").all("tr")] == [
        ["0", "finished", "0.8000"], ["1", "finished", "0.8100"], ["2", "finished", "0.8200"],
    ]  # fmt: skip


def test_a_cell_shows_every_hyper_parameter(reported: Project) -> None:
    spec = cell(reported, CELL).runs[0]
    shown = {
        pair.only("th").text: pair.only("td").text
        for pair in read(reported).cell(ANCHOR).all("div", "configuration")[0].all("tr")
    }
    assert shown["algorithm"] == spec.method and shown["imratio"] == "0.1"
    assert shown["period"] == str(spec.train.period) and shown["clients"] == "4"
    assert shown["dataset"] == "cifar10" and shown["name"] == "mlp"
    assert not {"None", "null", "[]"} & set(shown.values())


def test_a_failed_cell_says_why_and_how_to_run_it(reported: Project) -> None:
    failed = cell(reported, CELL)
    (reported.root / failed.path).unlink()
    log = reported.root / "logs/train/reduced" / f"{CELL}.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "".join(f"line {i}\n" for i in range(50)) + "\x1b[31mValueError: <b>no</b> & such\x1b[0m\n"
    )
    shown = read(reported)
    section = shown.cell(ANCHOR)
    assert "! failed" in section.text
    said = section.all("pre")[0].text
    assert said.endswith("line 49 ValueError: <b>no</b> & such") and "line 20" not in said
    assert section.only("pre", "command").text == f"fedbench run {CELL} --scale reduced"
    assert f"Read from: logs/train/reduced/{CELL}.log" in section.text
    fine = cell(reported, CELL.replace("CoDA", "LocalSGDM"))
    assert f"Read from: {fine.path}" in shown.cell(f"reduced/{fine.name}").text
    listed = shown.root.only("section", id="trouble")
    assert CELL in listed.text and "no</b> & such" in listed.text
    assert (
        shown.root.only("article", id="reduced/localscgdam/table1").only("a", "tag", href=f"#{ANCHOR}").text
        == "failed"
    )


@pytest.mark.parametrize(
    ("log", "state"),
    [
        ("[1/1] x\n  seed 0: finished test_auc 0.8\n  seed 1: round 3/25, mean error: 0.5\n", "interrupted"),
        (
            "  seed 0: round 2/25\r  seed 0: finished test_auc 0.8\n  seed 1: diverged\n  seed 2: finished\n",
            "not run",
        ),
        ("  seed 0: finished test_auc 0.8\nslurmstepd: error: ... Killed\n", "failed"),
        ("Traceback (most recent call last):\n  File x\nRuntimeError: boom\n", "failed"),
        (None, "not run"),
    ],
)
def test_what_a_log_says_of_a_cell_without_results(reported: Project, log: str | None, state: str) -> None:
    (reported.root / cell(reported, CELL).path).unlink()
    if log is not None:
        path = reported.root / "logs/train/reduced" / f"{CELL}.log"
        path.parent.mkdir(parents=True)
        path.write_text(log)
    assert read(reported).rows()[ANCHOR, "test AUC"]["data-state"] == state


def test_a_log_of_old_does_not_speak_for_a_result_that_is_there(reported: Project) -> None:
    stale = cell(reported, CELL)
    reported.write(stale, [run_result(r.seed, f"old{r.seed}", {"test_auc": 0.8}) for r in stale.runs])
    reported.forget(stale.runs)
    log = reported.root / "logs/train/reduced" / f"{CELL}.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: an error of last week\n")
    shown = read(reported)
    assert shown.rows()[ANCHOR, "test AUC"]["data-state"] == "not run"
    said = shown.cell(ANCHOR).text
    assert "other hyper-parameters" in said and "last week" not in said


def test_diverged_and_incomplete_cells_give_their_reason_once(reported: Project) -> None:
    bad, part = cell(reported, CELL), cell(reported, "localscgdam/CIFAR10/p8_imratio0.1/CoDA")
    runs = [run_result(r.seed, r.key, {"test_auc": 0.8}) for r in bad.runs]
    runs[1] |= {"status": "diverged", "reason": "alpha became infinite in round 3", "metrics": {}}
    reported.write(bad, runs)
    reported.write(part, [run_result(r.seed, r.key, {"test_auc": 0.8}) for r in part.runs[:2]])
    reported.forget(part.runs[2:])
    shown = read(reported)
    assert shown.rows()[ANCHOR, "test AUC"]["data-state"] == "diverged"
    assert shown.cell(ANCHOR).only("p", "reason").text.count("alpha became infinite in round 3") == 1
    assert "2 of 3 seeds are done" in shown.cell(f"reduced/{part.name}").only("p", "reason").text
    (group,) = [e for e in shown.root.all("div", "group") if shown.cell(ANCHOR) in e.walk()]
    assert "CoDA: diverged in 1 of 3 seeds" in drawn(group.only("img"))
    kinds = [
        e
        for e in shown.root.only("section", id="trouble").children
        if isinstance(e, Element) and e.tag == "details"
    ]
    assert [e.all("summary")[0].text.partition(":")[0] for e in kinds] == [
        "✕ diverged 1 cell", "◐ incomplete 1 cell",
    ]  # fmt: skip


def test_other_papers_scales_and_data_sets_with_results_are_shown(reported: Project) -> None:
    demo = Config(scale="demo", datasets=["Digits", "STL10"])
    added = cell(reported, "localscgdam/STL10/p4_imratio0.1/CoDA", demo)
    reported.finish(added, [0.8])
    climb = Config(scale="reduced", paper="climb")
    reported.fill("climb", "table2", climb, ("test_minority_accuracy", "test_overall_accuracy"))
    shown = read(reported)
    chapters = [e["id"] for e in shown.root.all("section", "chapter")]
    assert chapters == ["reduced/localscgdam", "demo/localscgdam", "reduced/climb"]
    claims = [e["id"] for e in shown.root.all("article") if e["id"].startswith("claims/")]
    assert claims == ["claims/localscgdam"], "once, though it has two chapters"
    assert shown.rows()[f"demo/{added.name}", "test AUC"]["data-state"] == "matches (one seed)"
    command = shown.cell(f"demo/{added.name}").only("pre", "command").text
    assert "--set 'datasets=[\"STL10\"]'" in command
    two = [
        key
        for key in shown.rows()
        if key[0].startswith("reduced/climb/MNIST/rho10_n_minority1_alpha0.1/CLIMB")
    ]
    assert sorted(metric for _, metric in two) == ["minority accuracy", "overall accuracy"]


def test_several_studies_are_gathered_as_one_after_another_and_what_is_wrong_is_said(
    reported: Project,
) -> None:
    config = Config(scale="reduced")
    reported.fill("climb", "table2", config.model_copy(update={"paper": "climb"}), ("test_overall_accuracy",))
    alone = [page.texts_of(config, (study, ["reduced"])) for study in ("localscgdam", "climb")]
    assert page.save_page(config).read_text() == page.render([*itertools.chain(*alone)], config)
    numbers = Path("reproduced/reduced/climb.csv")
    numbers.parent.mkdir(parents=True, exist_ok=True)
    numbers.write_text("nonsense\n1,2\n")
    with pytest.raises(UserError, match=str(numbers)):
        page.save_page(config)


def test_a_mistake_of_the_call_is_said_before_the_work_begins(
    reported: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(scale="reduced", datasets=["MNIST"])
    monkeypatch.setattr(page, "studies", lambda config: {"localscgdam": ["reduced"], "climb": ["reduced"]})
    monkeypatch.setattr(processes, "ProcessPoolExecutor", lambda *how, **more: pytest.fail("it began"))
    with pytest.raises(UserError, match="unknown dataset of localscgdam 'MNIST'"):
        page.save_page(config)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"set": {"train.iterations": 3, "params.lr": 0.5}},
        {"seeds": [4, 7]},
        {"datasets": ["CIFAR10"], "seeds": [1]},
        {"data_dir": "d x"},
    ],
)
def test_the_command_of_a_cell_trains_exactly_that_cell(reported: Project, given: dict[str, object]) -> None:
    config = load_config(overrides={"scale": "reduced", **given})
    program, verb, pattern, *options = shlex.split(
        read(reported, config).cell(ANCHOR).only("pre", "command").text
    )
    assert (program, verb) == ("fedbench", "run")
    pairs = list(zip(options[::2], options[1::2], strict=True))
    sets = [value for name, value in pairs if name == "--set"]
    asked = configured(dict(pairs)["--scale"], pattern.split("/")[0], sets)
    (chosen,) = matching(Plan(asked, asked.paper).cells(), pattern)
    assert chosen == cell(reported, CELL, config)
    assert asked.set == config.set
    assert asked.data_dir == config.data_dir


def test_nothing_run_is_a_page_too(project: Project) -> None:
    (project.root / "config/config.yaml").write_text("scale: paper\n")
    shown = read(project, Config(scale="paper"))
    assert not shown.root.all("section", id="trouble")
    assert {row["data-state"] for row in shown.rows().values()} == {"not run"}
    assert "nothing run here" in shown.root.all("dl", "pairs")[0].text


def test_provenance_names_code_hardware_versions_and_time(reported: Project) -> None:
    said = read(reported).root.all("dl", "pairs")[0].text
    seconds = 1.5 * 3 * 30
    assert "0123456789ab" in said and "2 cores" in said and "numpy 2.4" in said
    assert f"training {math.floor(seconds / 60 + 0.5)} min in all" in said


def drawn(image: Element) -> str:
    """The SVG of a picture; broken XML is an error."""
    kind, _, content = image["src"].partition(",")
    assert kind == "data:image/svg+xml"
    return " ".join(text for text in ElementTree.fromstring(unquote(content)).itertext() if text.strip())


def test_a_click_shows_the_curves_of_all_methods_in_the_setting(reported: Project) -> None:
    shown = read(reported)
    (group,) = [e for e in shown.root.all("div", "group") if shown.cell(ANCHOR) in e.walk()]
    methods = [section["id"].rpartition("/")[2] for section in group.all("section", "cell")]
    words = drawn(group.only("img"))
    assert len(methods) == 5 and all(method in words for method in (*methods, "test AUC", "published"))


def test_neither_an_endless_value_of_a_curve_nor_a_damaged_curve_stops_the_page(reported: Project) -> None:
    endless = {"round": [0, 1, 2, 3], "iteration": [0, 4, 8, 12], "test_auc": [0.5, np.nan, np.inf, 0.7]}
    for run in cell(reported, CELL).runs:
        reported.write_curve(run.key, endless)
    reported.finish(cell(reported, CELL), [0.8, 0.81, 0.82])
    damaged = cell(reported, "localscgdam/CIFAR10/p8_imratio0.1/CoDA")
    reported.write_curve(damaged.runs[0].key, endless)
    shown = read(reported)
    assert {ANCHOR, f"reduced/{damaged.name}"} <= {e["id"] for e in shown.root.all("section", "cell")}


def test_downloads_are_the_files_of_the_table(reported: Project) -> None:
    tables.save_table(Plan(Config(scale="reduced")), "table1")
    shown = read(reported).root.only("article", id="reduced/localscgdam/table1")
    for link in shown.only("p", "files").all("a"):
        assert link["download"] == "localscgdam-table1.csv.gz"
        content = gzip.decompress(base64.b64decode(link["href"].partition(",")[2]))
        assert content == (reported.root / "tables/localscgdam/table1.csv").read_bytes()


def test_what_was_not_trained_here_is_marked_in_the_overview_and_the_claims(reported: Project) -> None:
    from fedbench.results.export import export_reproduced

    export_reproduced(Plan(Config(scale="reduced")), "table1")
    (reported.root / cell(reported, CELL).path).unlink()
    shown = read(reported).root
    rows = shown.only("table", "overview").only("tbody").all("tr")
    assert [row.only("th").text for row in rows] == ["localscgdam Table 1 ‡ 1"]
    said = [tag.text for tag in shown.only("article", id="claims/localscgdam").all("span", "tag")]
    assert said[1].startswith("undecided") and said[1].endswith("‡") and said[0] == said[2] == "not run"


def test_a_number_is_listed_with_its_table_and_with_a_figure_where_no_table_shows_it(
    reported: Project, reduced: Config
) -> None:
    paper = localscgdam()
    paper["figures"]["figure1"]["metrics"] = ["test_auc", "test_ap"]
    reported.save_paper("localscgdam", paper)
    config = reduced.model_copy(update={"datasets": ["CATvsDOG"]})
    for target in ("figure1", "figure4"):
        reported.fill("localscgdam", target, config, ("test_auc", "test_ap"))
    made = chapter(Plan(config))
    listed = {(n.target, n.item.metric) for n in made.listed if n.target in paper["figures"]}
    assert listed == {("figure1", "test_ap"), ("figure4", "test_auc")}
