"""LaTeX: text survives escaping, tables compile and fit, and a text shows their numbers by macros."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_project import REDUCED, Project, cell_of, climb, table_of

from fedbench.errors import UserError
from fedbench.report import latex, tables
from fedbench.report.pdf import build_pdf, compile_source
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
        ('"Shirt" and ("8", 5") at -0.59 (-1), K-2', "``Shirt'' and (``8'', 5'') at $-$0.59 ($-$1), K-2"),
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
    label = latex.label_text("p = 4 · share of positives = 0.1")
    assert label == r"$p = 4$ $\cdot$ share of positives = 0.1", "a setting called by a letter"
    assert latex.breakable("see `fedbench show`") == r"see \texttt{fedbench show}", "what notes name as code"


@needs_latex
def test_latex_takes_any_text(project: Project) -> None:
    known = {chr(point) for point in (*range(0x20, 0x250), *range(0x370, 0x400))} | {*latex.SPECIAL}
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
    config = REDUCED
    tex, _, markdown, *_ = tables.save_table(Plan(config, "my_paper"), "table2")
    tex.rename(odd := tex.with_name("table2 ę#.tex"))
    build_pdf(odd)
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
    assert caplog.messages == []
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


def test_without_latex_there_is_no_pdf_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tex = tmp_path / "table.tex"
    tex.write_text("anything\n")
    with pytest.raises(UserError, match="no LaTeX here"):
        build_pdf(tex)
    assert not tex.with_suffix(".pdf").exists()


ROOT = Path(__file__).parents[3]
FIRST = "localscgdam/table1/FashionMNIST/4/LocalSCGDAM"


@pytest.fixture
def files(tiny: Project) -> dict[str, bytes]:
    """The macros of a table of each paper, by the names of their files."""
    folder = tiny.root / "macros"

    def make() -> None:
        config = REDUCED
        tiny.fill("climb", "table2", config)
        folder.mkdir()
        for paper, name in (("localscgdam", "table1"), ("climb", "table2")):
            (folder / f"{paper}.tex").write_text(table_of(config, paper, name).macros())

    tiny.once("macros", make)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def typeset(text: str, files: dict[str, bytes], folder: Path) -> str:
    """Compile a document that reads the macros; return what its page says."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    read = "".join(rf"\input{{{folder / name}}}" for name in files)
    source = rf"\documentclass{{article}}\pagestyle{{empty}}{read}\begin{{document}}{text}\end{{document}}"
    content, _ = compile_source(source, "the text")
    pdf = folder / "text.pdf"
    pdf.write_bytes(content)
    return subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True).stdout


@needs_latex
def test_a_text_shows_the_numbers_of_the_tables(files: dict[str, bytes], tmp_path: Path) -> None:
    text = rf"""
    \edef\digits{{\fedbench{{{FIRST}}}}}\ifdim\digits pt>0.97pt large\fi\par
    {FIRST.count("/")} $\fedbench{{{FIRST}}} \pm \fedbench{{{FIRST}/std}}$, \fedbench{{{FIRST}/seeds}} seeds,
    \fedbench{{{FIRST}/scale}}, printed \fedbench{{{FIRST}/paper}}, \fedbench{{{FIRST}/verdict}};
    CoDA $\fedbench{{localscgdam/table1/FashionMNIST/4/CoDA/difference}}$ \par
    \fedbench{{climb/table2/MNIST/10/1/0.1/CLIMB/test_minority_accuracy/paper}}
    \fedbench{{climb/table2/MNIST/10/1/0.1/CLIMB/test_overall_accuracy/paper}}"""
    said = " ".join(typeset(text, files, tmp_path).split())
    assert said.startswith(
        "large 4 0.980 ± 0.005, 3 seeds, reduced, printed 0.980, inconclusive; CoDA −0.036 "
    )
    for number, metric in zip(said.split()[-2:], ("minority_accuracy", "overall_accuracy"), strict=True):
        assert re.search(rf"{metric}/paper}}{{{re.escape(number)}}}", files["climb.tex"].decode())


@needs_latex
@pytest.mark.parametrize(
    ("key", "why"),
    [
        (f"{FIRST}X", f"fedbench: there is no number {FIRST}X"),
        ("localscgdam/table1/Melanoma/8/CoDA", "localscgdam/table1/Melanoma/8/CoDA: not run"),
        ("localscgdam/table1/FashionMNIST/4/LocalSGDM_RL/std", "LocalSGDM_RL/std: diverged"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_it(
    key: str, why: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"the text does not compile: .*{re.escape(why)}"):
        typeset(rf"\fedbench{{{key}}}", files, tmp_path)


def test_a_part_of_the_seeds_is_no_number_and_each_number_has_one_key(project: Project) -> None:
    project.fill("climb", "table2")
    cell = cell_of(project, "CIFAR10", "CoDA")
    project.finish(cell, [0.9, 0.91, 0.92])
    key = "localscgdam/table1/CIFAR10/4/CoDA"
    assert rf"\fedbenchnumber{{{key}}}{{0.910}}" in table_of().macros()
    project.forget(cell.runs[2:])
    text = table_of().macros()
    for part in ("", "/std", "/seeds", "/scale"):
        assert rf"\fedbenchnone{{{key}{part}}}{{2 of 3 seeds}}" in text
    text = table_of(REDUCED, "climb", "table2").macros()
    keys = re.findall(r"^\\fedbench(?:number|none){([^}]*)}", text, re.MULTILINE)
    parts = 2 * 2 * 2 * 3 * 4 * 2 * 7  # datasets, three settings, methods, metrics, parts
    assert len(keys) == len({*keys}) == parts


@needs_latex
def test_a_text_quotes_numbers_and_ranks_of_a_leaderboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    board = table_of(REDUCED, "arena", "leaderboard")
    key = "arena/leaderboard/FashionMNIST/FedDyn/test_auc"
    of = "dataset == 'FashionMNIST' and method == 'FedDyn' and metric == 'test_auc'"
    row = board.rows.query(of).iloc[0]
    text = rf"\fedbench{{{key}}}, \fedbench{{{key}/std}}, \fedbench{{{key}/seeds}}; rank \fedbench{{{key}/rank}}."
    said = typeset(text, {"board.tex": board.macros().encode()}, tmp_path)
    rank = "–".join(map(str, dict.fromkeys((row["rank_best"], row["rank_worst"]))))
    assert f"{row['mean']:.3f}, {row['std']:.3f}, {row['n_seeds']}; rank {rank}." in said
