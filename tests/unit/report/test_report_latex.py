"""LaTeX: every text survives escaping, the tables compile with booktabs and graphicx, and nothing sticks out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_project import Project, climb

from fedbench.errors import UserError
from fedbench.report import latex, latex_text, tables
from fedbench.report.pdf import build_pdf
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

needs_latex = pytest.mark.skipif(
    not all(map(shutil.which, ("latexmk", "pdftotext"))), reason="latexmk or pdftotext is not installed"
)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (
            "LocalSGDM_RL 50% a&b #1 {x} ~ ^ \\ <|>",
            r"LocalSGDM\_RL 50\% a\&b \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} $<$$|$$>$",
        ),
        ("--data-dir – x", "-{}-data-dir -- x"),
        ("ρ ± −0.1 ≤ τ", r"$\rho$ $\pm$ $-$0.1 $\leq$ $\tau$"),
        ("one\n\ntwo\t three \n", "one two three "),
        ("x ∈ A ≠ B", r"x $\in$ A $\neq$ B"),
        ("Łukasz Wójcik, Skłodowska-Curie, Müller, Çelik", "Łukasz Wójcik, Skłodowska-Curie, Müller, Çelik"),
        ("Gąsior, Wałęsa, Đặng, Ħal, «so»", "Gasior, Wałesa, Dang, Hal, ``so''"),
        ("Mu\u0308ller, 10⁻⁵, w₀, ﬁt, ά", r"Müller, 10$^-$$^5$, w$_0$, fit, $\alpha$"),
        ("語 🙂 \x00", "? ? ?"),
    ],
)
def test_what_latex_reads_otherwise_or_its_fonts_lack_is_replaced(text: str, escaped: str) -> None:
    assert latex.escape(text) == escaped


def test_a_label_is_mathematics_where_it_is_a_letter() -> None:
    assert latex.label_text("p = 4 · share of positives = 0.1") == r"$p = 4$ $\cdot$ share of positives = 0.1"


@needs_latex
def test_latex_takes_any_text(project: Project) -> None:
    known = {chr(point) for point in (*range(0x20, 0x250), *range(0x370, 0x400))} | {*latex_text.SPECIAL}
    everything = " ".join(sorted(known)) + " 語 🙂 \x00 a\u0328"
    paper = climb()
    paper["methods"] = {f"{name}_+": how for name, how in paper["methods"].items()}
    spec = {
        **paper["tables"]["table2"],
        "methods": [*paper["methods"]],
        "rows": ["method"],
        "published": None,
    }
    spec |= {"columns": ["n_minority"], "settings": {"n_minority": [1, 3]}, "datasets": ["MNIST"]}
    paper["tables"]["table2"] = {**spec, "title": f"A title\n\nof two paragraphs: {everything}\n"}
    paper["settings"]["n_minority"]["label"] = "[classes] ∈ Đ\n\nĦ"
    project.save_paper("my_paper", {**paper, "figures": {}})
    config = Config(scale="reduced")
    tex, _, markdown, *_ = tables.save_table(Plan(config, "my_paper"), "table2")
    tex.rename(odd := tex.with_name("table2 ę#.tex"))
    assert build_pdf(odd) is not None
    assert "**A title of two paragraphs: " in markdown.read_text()


@needs_latex
@pytest.mark.parametrize(("paper", "name"), [("localscgdam", "table1"), ("climb", "table2")])
def test_latex_takes_it_and_nothing_sticks_out(
    project: Project, paper: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(scale="paper")
    metrics = ("test_minority_accuracy", "test_overall_accuracy") if paper == "climb" else ("test_auc",)
    project.fill(paper, name, config, metrics)
    tex = tables.save_table(Plan(config, paper), name)[0]
    assert re.findall(r"\\usepackage\{(.+)\}", tex.read_text()) == ["booktabs,graphicx"]
    pdf = build_pdf(tex)
    assert pdf is not None and caplog.messages == []
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
def test_latex_errors_and_overfull_lines_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = tmp_path / "bad.tex"
    bad.write_text("\\undefinedcommand\n")
    with pytest.raises(UserError, match=r"bad.tex does not compile: Undefined control sequence"):
        build_pdf(bad)
    wide = tmp_path / "wide.tex"
    wide.write_text("\\noindent\\begin{tabular}{l}" + "wide " * 60 + "\\end{tabular}\n")
    assert build_pdf(wide) and "wide.tex: Overfull \\hbox" in caplog.text


def test_without_latex_there_is_no_pdf_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tex = tmp_path / "table.tex"
    tex.write_text("anything\n")
    assert build_pdf(tex) is None and not tex.with_suffix(".pdf").exists()
