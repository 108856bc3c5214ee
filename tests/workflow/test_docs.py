"""The documentation: an output on each how-to, plain words, and no dead link."""

from __future__ import annotations

import re
import shutil
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fedbench.report import tables
from fedbench.study.configuration import load_config, paper_keys, study_path
from fedbench.study.plan import Plan
from projects import BIN, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
NAV = {
    next(iter(part)): next(iter(part.values()))
    for part in yaml.safe_load((ROOT / ".github/mkdocs.yml").read_text())["nav"]
}
HOW_TO = [next(iter(page.values())) for page in NAV["How to"]]
OF_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
HIDDEN = re.compile(r"^```.*?^```$|(?<=\])\([^)\s]*\)", flags=re.M | re.S)
"""Code, targets of links."""
GENERATED = yaml.safe_load((DOCS / "numbers.yaml").read_text())


def said(page: Path) -> str:
    """What a reader of a page reads, without code."""
    return HIDDEN.sub("", page.read_text(encoding="utf-8"))


def test_the_readme_says_first_what_is_simulated() -> None:
    first = README.partition("\n## ")[0]
    assert "Federation is simulated on one machine; there is no network and no privacy layer." in first


@pytest.mark.parametrize("page", HOW_TO)
def test_a_how_to_shows_what_comes_out(page: str) -> None:
    """A block without a language is what a program prints."""
    text = (DOCS / page).read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)$", text, flags=re.M)
    assert "" in fences[::2] or "![" in text


@OF_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def test_rows_of_shipped_numbers_on_pages_are_what_ships_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder without runs, of a study as the one that the pages show; without the star of the best."""
    for part in ("reproduced", "published"):
        (tmp_path / part).symlink_to(ROOT / part)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    table1 = {"methods": ["LocalSGDAM", "LocalSGDM"], "settings": {"p": [4]}}
    mine = {"extends": "localscgdam", "title": "Two methods", "tables": {"table1": table1}}
    (tmp_path / "config/papers/mine.yaml").write_text(yaml.safe_dump(mine))
    monkeypatch.chdir(tmp_path)
    table = tables.table_of(Plan(load_config(), "mine"), "table1").terminal()
    rows = [" ".join(line.replace("*", "").split()) for line in table.splitlines()]
    by_hand = [page for page in PAGES if str(page.relative_to(ROOT)) not in GENERATED]
    pages = "\n".join(page.read_text(encoding="utf-8") for page in by_hand).replace("*", "")
    shown = [" ".join(line.split()) for line in pages.splitlines() if re.match(r"\w+ +0\.\d+‡", line)]
    assert len(shown) == 2
    assert [line for line in shown if not any(row.startswith(line) for row in rows)] == []


TEXTS = [*PAGES, *(ROOT / study_path(key) for key in paper_keys()), *sorted(ROOT.glob("src/**/*.html"))]
IDIOMS = re.compile(
    r"\b(nobody|whoever|everybody|anybody|somebody|(?<!each )(?<!one )of which|"
    r"could not be had|to be had|comes along|no praise|held against|for want of|on an edge of|in vain|"
    r"stands for more|thereof|turns? nothing)\b",
    flags=re.I,
)
"""Words that a reader has to read twice."""
TEXT = {tokenize.STRING, tokenize.COMMENT}


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module: what it says to users, its docstrings and its comments."""
    with path.open("rb") as file:
        yield from (token.string for token in tokenize.tokenize(file.readline) if token.type in TEXT)


def test_texts_are_free_of_idioms() -> None:
    texts = [(path, said(path)) for path in TEXTS]
    texts += [(path, text) for path in sorted(ROOT.glob("src/**/*.py")) for text in texts_of(path)]
    assert [
        f"{path.relative_to(ROOT)}: {hit[0]}" for path, text in texts for hit in IDIOMS.finditer(text)
    ] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


FROM_OUTSIDE = {"background/benchmarks.md": "benchmarks", "reference/results/files.md": "reproduced"}


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / ".github/mkdocs.yml").read_text(), flags=re.M))
    assert listed == {str(page.relative_to(DOCS)) for page in PAGES[1:]} | {*FROM_OUTSIDE}


def built_site(root: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does."""
    (command,) = re.findall(r"mkdocs build.*(?=  #)", (ROOT / "Makefile").read_text())
    return subprocess.run(
        [BIN / "mkdocs", *command.split()[1:]], cwd=root,
        capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


def test_the_site_builds_and_a_dead_link_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("material")
    for folder in ("docs", "figures/gallery", "tables/gallery"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for path in (".github/mkdocs.yml", *(f"{folder}/README.md" for folder in FROM_OUTSIDE.values())):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    made = built_site(tmp_path)
    assert made.returncode == 0, made.stderr
    for page in ("reference/results/overview.md", *FROM_OUTSIDE):
        assert (tmp_path / "site" / page.removesuffix(".md") / "index.html").is_file()
    for path in ("figures/gallery/climb/figure1.svg", "tables/gallery/climb/table1.tex"):
        assert (tmp_path / "site/gallery" / path).read_bytes() == (ROOT / path).read_bytes()
    shown = (tmp_path / "site/reference/gallery/index.html").read_text()
    assert 'src="../../gallery/figures/gallery/climb/figure1.svg"' in shown
    assert 'href="../../report.html"' in shown and not [*(tmp_path / "site").rglob("*.map")]
    with (tmp_path / "docs/howto/data.md").open("a") as file:
        file.write("[dead](../nowhere.md)")
    made = built_site(tmp_path)
    assert made.returncode != 0 and "nowhere.md" in made.stderr
