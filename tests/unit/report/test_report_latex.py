"""LaTeX: every text survives escaping, the tables compile with booktabs alone, and nothing sticks out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_project import Project

from fedbench.errors import UserError
from fedbench.report import latex, tables
from fedbench.report.pdf import build_pdf, compile_table
from fedbench.schema import Config

needs_latex = pytest.mark.skipif(
    not all(map(shutil.which, ("latexmk", "pdftotext"))), reason="latexmk or pdftotext is not installed"
)


def test_escaping() -> None:
    assert latex.escape("LocalSGDM_RL 50% a&b #1 {x} ~ ^ \\ <|>") == (
        r"LocalSGDM\_RL 50\% a\&b \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} $<$$|$$>$"
    )
    assert latex.escape("--data-dir – x") == "-{}-data-dir -- x"
    assert latex.escape("ρ ± −0.1 ≤ τ") == r"$\rho$ $\pm$ $-$0.1 $\leq$ $\tau$"
    assert latex.label_text("p = 4 · share of positives = 0.1") == r"$p = 4$ $\cdot$ share of positives = 0.1"


@needs_latex
@pytest.mark.parametrize("scale", ["demo", "reduced", "paper"])
@pytest.mark.parametrize(("paper", "name"), [("localscgdam", "table1"), ("climb", "table2")])
def test_latex_takes_it_and_nothing_sticks_out(project: Project, paper: str, name: str, scale: str) -> None:
    config = Config(scale=scale)
    metrics = ("test_minority_accuracy", "test_overall_accuracy") if paper == "climb" else ("test_auc",)
    project.fill(paper, name, config, metrics)
    tex = tables.build(paper, name, config, project.root)[0]
    assert set(re.findall(r"\\usepackage\{(\w+)\}", tex.read_text())) <= {"booktabs"}
    pdf, complaints = compile_table(tex)
    assert complaints == []
    assert pdf is not None
    done = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True)
    assert f"Table {name.removeprefix('table')}: " in done.stdout, "numbered as in the paper, not from one"


@needs_latex
def test_the_same_table_is_the_same_pdf_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tex = tmp_path / "small.tex"
    tex.write_text("\\begin{tabular}{l}\\toprule x\\\\\\bottomrule\\end{tabular}\n")
    made = []
    for second in ("1000000000", "1700000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", second)
        assert build_pdf(tex) == tex.with_suffix(".pdf")
        made.append(tex.with_suffix(".pdf").read_bytes())
    assert made[0] == made[1]


@needs_latex
def test_latex_errors_and_overfull_lines_are_told(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tex"
    bad.write_text("\\undefinedcommand\n")
    with pytest.raises(UserError, match=r"bad.tex does not compile: Undefined control sequence"):
        build_pdf(bad)
    wide = tmp_path / "wide.tex"
    wide.write_text("\\noindent\\begin{tabular}{l}" + "wide " * 60 + "\\end{tabular}\n")
    assert any(complaint.startswith("Overfull \\hbox") for complaint in compile_table(wide)[1])


def test_without_latex_there_is_no_pdf_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tex = tmp_path / "table.tex"
    tex.write_text("anything\n")
    assert build_pdf(tex) is None and not tex.with_suffix(".pdf").exists()
