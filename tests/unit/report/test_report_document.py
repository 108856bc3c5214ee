"""A paper's document: it compiles, says scale and provenance in every caption, and survives any text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_project import Project, run_result

from fedbench.errors import UserError
from fedbench.plan.cells import matching
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.document import build as paper_document
from fedbench.report.page import data as page_data

CONFIG = Config(scale="reduced")
needs_latex = pytest.mark.skipif(
    not all(map(shutil.which, ("latexmk", "pdflatex", "pdftotext"))),
    reason="no LaTeX here; texlive-latex-recommended, latexmk and poppler-utils have it",
)


@pytest.fixture
def reported(project: Project) -> Project:
    """A project with one table's cells finished, one of them diverged, one failed with an ugly log."""
    (project.root / "config/config.yaml").write_text("scale: reduced\n")
    project.fill("localscgdam", "table1", CONFIG)
    cells = project.cells("localscgdam", None, CONFIG)
    (diverged,) = matching(cells, "localscgdam/CIFAR10/p4_imratio0.1/LocalSGDM_RL")
    (failed,) = matching(cells, "localscgdam/CIFAR10/p8_imratio0.1/CoDA")
    bad = {"status": "diverged", "reason": "α became ∞ in round 3 of 25 (100 % of w_0)"}
    project.write(diverged, [{**run_result(r.seed, r.key, {}), **bad} for r in diverged.runs])
    (project.root / failed.path).unlink()
    log = project.root / "logs/train/reduced" / f"{failed.name}.log"
    log.parent.mkdir(parents=True)
    log.write_text("\\end{verbatim} #$%&_{}~^ → 🙂\t\x00\nValueError: " + "long_word_" * 30 + "\n")
    return project


def text_of(pdf: Path) -> str:
    """The words of a PDF, blanks folded."""
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


@needs_latex
def test_the_document_holds_everything_and_fits_its_pages(
    reported: Project, caplog: pytest.LogCaptureFixture
) -> None:
    path = paper_document.build(Plan(CONFIG))
    assert path == Path("reports/localscgdam.pdf")
    assert not caplog.messages, "nothing too wide or too tall"
    said = text_of(path)
    assert "Federated Compositional Deep AUC Maximization" in said
    captions = re.findall(
        r"(?:Table|Figure) \d\w*: .*?Scale: reduced.*?Runs [0-9a-f]{12}, code [\w, ()]+", said
    )
    assert [c.split(":")[0] for c in captions] == ["Table 1", "Figure 1", "Figure 4"]
    assert "diverged 3/3" in said and "became" in said
    assert "ValueError: long_word_" in said and "fedbench run localscgdam/CIFAR10/p8_imratio0.1/CoDA" in said
    assert "2 cores" in said


@needs_latex
def test_a_command_can_be_copied_from_the_document(reported: Project) -> None:
    config = CONFIG.model_copy(update={"seeds": [0, 1, 2], "data_dir": "my data"})
    command = "fedbench run localscgdam/CIFAR10/p8_imratio0.1/CoDA --scale reduced"
    command += " --set 'seeds=[0, 1, 2]' --set 'data_dir=\"my data\"'"
    assert command in text_of(paper_document.build(Plan(config)))


@needs_latex
def test_the_same_results_give_the_same_bytes(reported: Project) -> None:
    first = paper_document.build(Plan(CONFIG)).read_bytes()
    assert paper_document.build(Plan(CONFIG)).read_bytes() == first


@needs_latex
def test_a_paper_of_which_nothing_is_run_compiles_too(reported: Project) -> None:
    said = text_of(paper_document.build(Plan(CONFIG, "climb")))
    assert "Table 2" in said and "nothing run" in said and "Not finished" not in said


@needs_latex
def test_title_and_citation_may_have_any_characters_and_paragraphs(reported: Project) -> None:
    reported.change(
        title="Średnia ważona: x ∈ ℝ, «two»\n\nparagraphs\n",
        citation="Gęślą, Đặng and Ħal.\n\nWhere 1 ≠ 2. 2026.\n",
    )
    said = text_of(paper_document.build(Plan(CONFIG)))
    assert "paragraphs Ge" in said and "2026. Rebuilt by fedbench" in said


def test_outcome_counts_the_verdicts_of_the_page(reported: Project) -> None:
    shown = page_data.chapter(Plan(CONFIG))
    source = paper_document.source(shown)
    counts = shown.tables[0].states
    row = next(line for line in source.splitlines() if line.startswith("Table 1 & "))
    assert [int(n) for n in re.findall(r"& (\d+)", row)] == list(counts.values())
    assert counts["diverged"] == 1 and counts["failed"] == 1


def test_without_latex_it_says_what_to_install(reported: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="install texlive-latex-recommended and latexmk"):
        paper_document.build(Plan(CONFIG))
    assert not (reported.root / "reports").exists()


def test_an_unknown_paper_is_named_with_the_nearest(reported: Project) -> None:
    with pytest.raises(UserError, match="climb"):
        paper_document.build(Plan(CONFIG, "clim"))
