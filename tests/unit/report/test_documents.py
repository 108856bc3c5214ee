"""Numbers of README.md and of the documentation's results are those that are shipped."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fedbench import algorithms
from fedbench.commands.cli import app
from fedbench.registry import find

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


def faults(name: str, text: str) -> list[str]:
    """What is wrong with a page, also where its tables are written anew."""
    lines = zip(text.splitlines(), documents.rewritten(text, HELD[name]).splitlines(), strict=False)
    return [old for old, new in lines if old != new] + [*documents.faults(name, text, HELD[name])]


def test_every_number_is_as_it_is_shipped() -> None:
    wrong = [line for name, text in PAGES.items() for line in faults(name, text)]
    assert not wrong, "`make numbers` writes the tables; sentences are yours:\n" + "\n".join(wrong)


def test_a_changed_number_is_noticed_wherever_it_stands() -> None:
    """Twenty of those with three decimals, drawn from all pages with measured tables: one digit is another one."""
    places = [
        (name, number.span())
        for name, text in PAGES.items()
        for number in documents.MEASURED.finditer(
            re.sub(r"```.*?```|`[^`]*`", documents.blank, text, flags=re.S)
        )
        if any("table" in entry for entry in HELD[name])
    ]
    assert len(places) > 900
    draw = np.random.default_rng(0)
    for name, (start, end) in (places[at] for at in draw.choice(len(places), 20, replace=False)):
        text = PAGES[name]
        digit = draw.choice([at for at in range(start, end) if text[at].isdigit()])
        changed = f"{text[:digit]}{(int(text[digit]) + 1) % 10}{text[digit + 1 :]}"
        assert faults(name, changed), text[start:end]


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


def test_a_hyper_parameter_has_its_range_default_and_meaning_also_where_it_is_inherited() -> None:
    lines = [*reference_pages.hyper_parameters(find(algorithms, "method", "coda", "Method"))]
    known = {
        "* **`lr_dual`** (number above 0): dual step size.\n",
        "* **`restart_samples`** (whole number at least 0): samples of each client in the dual restart; "
        "0 leaves alpha as it is (CODA+).\n",
        "* **`alpha_least`** (number at least -1 and at most 0 or `null`, default `null`): "
        "alpha is never below it after a local step or a restart; null for no bound.\n",
    }  # fmt: skip
    assert known <= {*lines}


def test_pages_are_free_of_hidden_comments() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if "<!--" in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    "sample", [entry["printed"] for held in HELD.values() for entry in held if "printed" in entry]
)
def test_a_sample_has_the_lines_that_its_command_prints(sample: dict[str, Any]) -> None:
    with docs_tables.elsewhere():
        printed = iter(CliRunner().invoke(app, sample["command"].split()).stdout.splitlines())
    lines = [line for line in docs_tables.printed(**sample).splitlines()[1:-1] if line != "..."]
    assert len(lines) > 4 and all(line in printed for line in lines), "in their order"


def test_claims_at_a_scale_are_those_of_that_scale() -> None:
    with docs_tables.elsewhere():
        said = CliRunner().invoke(app, ["claims", "climb", "--scale", "paper"]).stdout
    assert (
        "    paper: undecided" in said and "    reduced: " not in said and "    published: 38 of 40" in said
    )


def test_the_readme_has_the_picture_of_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = loaded(ROOT / "benchmarks/picture.py")
    monkeypatch.setattr(picture, "TARGET", tmp_path / "picture.svg")
    picture.main()
    drawn = (tmp_path / "picture.svg").read_bytes()
    assert drawn == (ROOT / "docs/pictures/fashionmnist.svg").read_bytes(), "`make picture` draws it again"
