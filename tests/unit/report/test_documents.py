"""Numbers and the gallery of README.md and of the documentation's results are those that are shipped."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from fedbench.commands.cli import app

ROOT = Path(__file__).parents[3]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.append(str(ROOT / "benchmarks"))  # where documents.py finds docs_tables.py
documents = loaded(ROOT / "benchmarks/documents.py")
docs_tables, reference_pages = sys.modules["docs_tables"], sys.modules["reference_pages"]
HELD = documents.HELD
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in HELD}


def test_every_number_is_as_it_is_shipped() -> None:
    wrong = [fault for name, text in PAGES.items() for fault in documents.faults(name, text, HELD[name])]
    assert not wrong, "sentences are yours:\n" + "\n".join(wrong)
    for name, text in PAGES.items():
        assert documents.rewritten(text, HELD[name]) == text, f"`make numbers` writes the tables of {name}"


PLACES = ("tables/gallery", "figures/gallery", "docs/reference/gallery.md")
MOST = 1_500_000
"""Bytes of all examples."""


def contents(root: Path) -> dict[str, bytes]:
    """The examples and their page by name."""
    places = [root / place for place in PLACES]
    files = [path for place in places for path in ([place] if place.suffix else place.rglob("*.*"))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_examples_are_what_make_gallery_builds_today(tmp_path: Path) -> None:
    """In the process of the test above, with whose tables and claims they are made."""
    loaded(ROOT / "benchmarks/gallery.py").write(tmp_path)
    kept, made = contents(ROOT), contents(tmp_path)
    assert {*kept} == {*made}, "run `make gallery`"
    assert [name for name in made if kept[name] != made[name]] == [], "run `make gallery`"
    studies = {path.stem for path in ROOT.glob("reproduced/*/*.csv")}
    assert {name.split("/")[2] for name in made if name.startswith("tables/")} == studies
    page = made["docs/reference/gallery.md"].decode()
    assert all(f"../../{name})" in page for name in made if "gallery/" in name)
    assert not any(str(ROOT).encode() in content for content in made.values())
    assert sum(map(len, made.values())) <= MOST


@pytest.mark.parametrize(
    ("text", "says", "fault"),
    [
        ("A sentence.\n\nIt has 0.986.\n", {}, "3: 0.986 is not in"),
        ("It loses\n0.019 then.\n", {"loses #": "[LocalSGDM, p=8] * 0"}, "2: says 0.019, shipped 0.0000"),
        ("It has 101.\n", {"has #": "{config/papers/climb.yaml: defaults/data/clients}"}, "shipped 100.0"),
        ("It has 0.5 to −0.3.\n", {"has # to #": [0.5, 0.3]}, "1: says −0.3, shipped 0.30"),
        ("It has 0.5.\n", {"had #": 0.5}, "nowhere says `had #`"),
    ],
)
def test_a_fault_is_named_with_its_line(text: str, says: dict[str, object], fault: str) -> None:
    (said,) = documents.faults("page", text, [{"table": {"of": "localscgdam/table1@reduced"}, "says": says}])
    assert fault in said and said.startswith("page:")


def test_a_table_that_is_not_described_is_named() -> None:
    with pytest.raises(ValueError, match=r"2 tables and samples, .* has 1"):
        documents.rewritten("| a |\n\n```\nb\n```\n", ["hand"])


@pytest.mark.parametrize("page", reference_pages.PAGES)
def test_pages_of_methods_networks_and_datasets_are_those_of_the_code(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == reference_pages.PAGES[page](), "`make numbers`"


@pytest.mark.parametrize(
    "sample", [entry["printed"] for held in HELD.values() for entry in held if "printed" in entry]
)
def test_a_sample_has_the_lines_that_its_command_prints(sample: dict[str, Any]) -> None:
    with docs_tables.elsewhere():
        printed = iter(CliRunner().invoke(app, sample["command"].split()).stdout.splitlines())
    lines = [line for line in docs_tables.printed(**sample).splitlines()[1:-1] if line != "..."]
    assert len(lines) > 4 and all(line in printed for line in lines), "in their order"


def test_a_result_counts_once_however_many_tables_show_it() -> None:
    """Tables A3 and A5 of climb show the runs or the print of its Tables 1 and 2, of which CIFAR-10 has not run."""
    printed = pd.concat(pd.read_csv(ROOT / f"published/climb/climb_table{of}.csv") for of in (1, 2))
    by_dataset = printed.groupby("dataset")["mean"].count()
    counts = docs_tables.glance(["climb"]).splitlines()[-1].split(" | ")[2:]
    assert [int(counts[at]) for at in (0, 1, 4)] == [
        by_dataset.sum(),
        by_dataset["MNIST"],
        by_dataset["CIFAR10"],
    ]


def test_the_readme_counts_the_methods_of_the_arena() -> None:
    arena = yaml.safe_load((ROOT / "config/studies/arena.yaml").read_text(encoding="utf-8"))
    count = len(arena["methods"].keys() - {"Random", "Pooled"})
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    places = [f"with {count} methods on the same data", f"| {count} in the arena", f"; {count} of them"]
    assert [place for place in places if place not in readme] == []


def test_the_readme_has_the_picture_of_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = loaded(ROOT / "benchmarks/picture.py")
    monkeypatch.setattr(picture, "TARGET", tmp_path / "picture.svg")
    picture.main()
    drawn = (tmp_path / "picture.svg").read_bytes()
    assert drawn == (ROOT / "docs/pictures/fashionmnist.svg").read_bytes(), "`make picture` draws it again"
