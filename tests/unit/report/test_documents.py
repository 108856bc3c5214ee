"""Numbers of README.md and of the documentation's results are those that are shipped."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from fedbench.commands.cli import app

ROOT = Path(__file__).parents[3]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.append(str(ROOT / "benchmarks"))  # where documents.py finds counts.py and docs_tables.py
documents = loaded(ROOT / "benchmarks/documents.py")
counts, docs_tables = documents.counts, sys.modules["docs_tables"]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in (*documents.RESULTS, *documents.CHOICES)}


def test_every_number_is_as_it_is_shipped() -> None:
    wrong = [line for name, text in PAGES.items() for line in documents.faults(name, text)]
    assert not wrong, "`make numbers` writes the tables; sentences are yours:\n" + "\n".join(wrong)


def test_a_changed_number_is_noticed_wherever_it_stands() -> None:
    """Twenty of them, drawn from all pages: one digit is another one."""
    places = [
        (name, number.start(), number.end())
        for name, text in PAGES.items()
        for number in documents.NUMBER.finditer(stated(name, text))
    ]
    assert len(places) > 900
    draw = np.random.default_rng(0)
    for name, start, end in (places[at] for at in draw.choice(len(places), 20, replace=False)):
        text = PAGES[name]
        digit = draw.choice([at for at in range(start, end) if text[at].isdigit()])
        changed = f"{text[:digit]}{(int(text[digit]) + 1) % 10}{text[digit + 1 :]}"
        line = text.count("\n", 0, start) + 1
        assert any(f"{name}:{line}: " in fault for fault in documents.faults(name, changed)), text[start:end]


@pytest.mark.parametrize("name", PAGES)
def test_a_changed_integer_of_a_sentence_is_noticed(name: str) -> None:
    """Four of each page, drawn: seeds, rounds, clients, places, settings, each with its last digit one higher."""
    text = PAGES[name]
    prose = documents.TABLE_ROW.sub(documents.blank, documents.written_by_hand(text))
    prose = re.sub(r"<!--.*?-->", documents.blank, prose, flags=re.S)
    integers = [number for number in counts.numbers(prose) if "." not in number[0]]
    assert len(integers) >= 4
    for at in np.random.default_rng(0).choice(len(integers), 4, replace=False):
        said = integers[at]
        if said[0].isalpha():
            changed = counts.WORDS[min(counts.WORDS.index(said[0].lower()) + 1, 18)]
        else:
            changed = said[0][:-1] + str((int(said[0][-1]) + 1) % 10)
        # at its place, or, where the other number is a fact of the tables, at a source too many below it
        assert documents.faults(name, text[: said.start()] + changed + text[said.end() :]), said


def test_what_stands_below_a_table_is_short_and_begins_with_what_its_numbers_are() -> None:
    """Of all tables that these pages are written from."""
    texts = "".join(PAGES.values())
    places = {one for of in re.findall(r"of: ([^,}]+@\w+)", texts) for one in of.split("+") if "/" in one}
    assert len(places) > 20
    for place in places:
        table = docs_tables.made(place)
        assert len(" ".join(table.below).split()) <= 80 and table.notes[0] in table.below, place


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("README.md", "show table1 --scale demo"),
        ("docs/claims.md", "claims climb"),
        ("docs/hospitals.md", "show hospitals/table1 --scale demo"),
    ],
)
def test_a_sample_has_the_lines_that_its_command_prints(page: str, command: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert docs_tables.rewritten(text) == text, "`make numbers` writes it"
    with docs_tables.elsewhere():
        printed = iter(CliRunner().invoke(app, command.split()).stdout.splitlines())
    (block,) = re.findall(r"^<!-- printed: [^\n]*\n```\n(.*?)^```$", text, flags=re.M | re.S)
    lines = [line for line in block.splitlines() if line != "..."]
    assert len(lines) > 4 and all(line in printed for line in lines), "in their order"


def test_claims_at_a_scale_are_those_of_that_scale() -> None:
    with docs_tables.elsewhere():
        said = CliRunner().invoke(app, ["claims", "climb", "--scale", "paper"]).stdout
    assert "    paper: undecided" in said and "    reduced: " not in said and "    in print: 38 of 40" in said


def test_a_sample_stands_on_one_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert len(re.findall(r"^FashionMNIST \(‡ scale paper\)\nLocalSCGDAM", texts, flags=re.M)) == 1
    assert len(re.findall(r"^    in print: ", texts, flags=re.M)) == 1


def test_what_decides_is_shown_at_the_scale_that_decides() -> None:
    """Claim 9 of climb is about runs that the paper's own scale alone has."""
    rows = [line.split(" | ") for line in docs_tables.judged("climb@paper").splitlines()[2:]]
    decides = {claim.removeprefix("| "): last.removesuffix(" |") for claim, *_, last in rows}
    assert [claim for claim, last in decides.items() if last != "–"] == [
        "CLIMB keeps its lead with 500 clients, a fifth of them in a round (4.1, Table 1)"
    ]


def stated(name: str, text: str) -> str:
    """What a page says, with its code, sources and tables of settings blank."""
    comments = re.compile(r"<!--.*?-->", flags=re.S)
    hidden = [documents.CODE, comments, *([documents.TABLE_ROW] if name in documents.CHOICES else [])]
    for pattern in hidden:
        text = pattern.sub(documents.blank, text)
    return text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("A sentence.\n\nLocalSGDM has 0.986.\n", "3: 0.986 has no source"),
        ("A mean over 9 seeds.\n", "1: 9 has no source"),
        ("A mean over six seeds.\n<!-- numbers: 5 -->\n", "1: says six, shipped 5.0: 5"),
        (
            "It has 101.\n<!-- numbers: {config/papers/climb.yaml: defaults/data/clients} -->\n",
            "says 101, shipped 100.0",
        ),
        ("At 39 places.\n<!-- numbers: {climb@reduced: 2.printed} -->\n", "1: says 39, shipped 38.0"),
        ("Half: 0.5.\n<!-- numbers: 0.4 -->\n", "1: says 0.5, shipped 0.40: 0.4"),
        ("Half: 0.5.\n<!-- numbers: 0.5; 0.4 -->\n", "2: more sources than numbers: 0.4"),
        ("Half: 0.5.\n<!-- numbers: [localscgdam/table1@demo: Nobody] -->\n", "no row is Nobody"),
        ("| a |\n| 0.5 |\n", "2: 0.5 stands in a table that is not written"),
    ],
)
def test_a_fault_is_named_with_its_line(text: str, fault: str) -> None:
    (said,) = documents.faults("README.md", text)
    assert fault in said and said.startswith("README.md:")


def test_the_readme_has_the_picture_of_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = loaded(ROOT / "benchmarks/picture.py")
    monkeypatch.setattr(picture, "TARGET", tmp_path / "picture.svg")
    picture.main()
    drawn = (tmp_path / "picture.svg").read_bytes()
    assert drawn == (ROOT / "docs/pictures/fashionmnist.svg").read_bytes(), "`make picture` draws it again"
