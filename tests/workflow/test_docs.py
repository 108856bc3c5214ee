"""The documentation: no dead link; a site of all pages, rules and switches as they are now."""

from __future__ import annotations

import re
import shutil
import subprocess
import typing
from pathlib import Path

import pytest
import yaml

from fedbench import registry
from fedbench.data import partitions
from fedbench.spec import ImbalanceSpec, LabelSpec
from fedbench.study.configuration import load_paper
from projects import BIN, ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
OTHERS = [*sorted((ROOT / ".github").glob("*.md")), ROOT / "config/README.md"]
FROM_OUTSIDE = {"background/benchmarks.md": "benchmarks", "reference/results/files.md": "reproduced"}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            path = (page.parent / file).resolve() if file else page
            assert path.exists(), target
            assert not anchor or anchor in anchors(path), target


def test_paths_and_make_targets_of_contributing_exist() -> None:
    text, makefile = (ROOT / ".github/CONTRIBUTING.md").read_text(), (ROOT / "Makefile").read_text()
    assert [path for path in re.findall(r"tests/[\w/.]+", text) if not (ROOT / path).exists()] == []
    targets = re.findall(r"make ([a-z][a-z0-9-]*)", text)
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_what_turns_skipped_tests_on_is_documented() -> None:
    said = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, *OTHERS, ROOT / "Makefile"])
    code = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    switches = {name for text in code for name in re.findall(r"\"(FEDBENCH_TEST_[A-Z]+)\"", text)}
    assert switches and [name for name in switches if name not in said] == []


def test_every_rule_of_data_has_its_line() -> None:
    page = (DOCS / "reference/rules.md").read_text(encoding="utf-8")
    for part, rules in (
        ("labels", typing.get_args(LabelSpec.model_fields["rule"].annotation)),
        ("imbalance", typing.get_args(ImbalanceSpec.model_fields["rule"].annotation)),
        ("partition", registry.names(partitions)),
    ):
        section = page.partition(f"| `{part}` |")[2].partition("\n\n")[0]
        assert [rule for rule in rules if f"| `rule: {rule}`" not in section] == []


def test_the_arenas_example_has_as_many_trials_as_each_method() -> None:
    """`fedbench tune` refuses any other number."""
    page = (DOCS / "reference/results/arena.md").read_text(encoding="utf-8")
    example = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (method,), tune = example["methods"].values(), load_paper(example["extends"]).tune
    assert tune and len(method["grid"]["lr"]) == tune.trials


def test_the_site_builds_with_every_page_in_its_navigation(tmp_path: Path) -> None:
    """As `make docs` builds it, where a dead link is an error."""
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / ".github/mkdocs.yml").read_text(), flags=re.M))
    assert listed == {str(page.relative_to(DOCS)) for page in PAGES[1:]} | {*FROM_OUTSIDE}
    pytest.importorskip("material")
    for folder in ("docs", "figures/gallery", "tables/gallery"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for path in (".github/mkdocs.yml", *(f"{folder}/README.md" for folder in FROM_OUTSIDE.values())):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (command,) = re.findall(r"mkdocs build.*(?=  #)", (ROOT / "Makefile").read_text())
    made = subprocess.run(
        [BIN / "mkdocs", *command.split()[1:]], cwd=tmp_path,
        capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    for page in ("reference/results/overview.md", *FROM_OUTSIDE):
        assert (tmp_path / "site" / page.removesuffix(".md") / "index.html").is_file()
    for path in ("figures/gallery/climb/figure1.svg", "tables/gallery/climb/table1.tex"):
        assert (tmp_path / "site/gallery" / path).read_bytes() == (ROOT / path).read_bytes()
    shown = (tmp_path / "site/reference/gallery/index.html").read_text()
    assert 'src="../../gallery/figures/gallery/climb/figure1.svg"' in shown
    assert 'href="../../report.html"' in shown and not [*(tmp_path / "site").rglob("*.map")]
