"""Names reach paths and command lines: what could do harm there is refused when a YAML is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy import PAPER, write_yaml

from fedbench.errors import UserError
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

HOSTILE = [
    "table1$(touch x)",
    "../../x",
    "a b",
    "a;b",
    "-x",
    ".x",
    "{x}",
    "a\nb",
    "a/b",
    "`id`",
    "é",
    "",
    "x" * 101,
]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["tables", "figures", "methods", "datasets", "settings"])
def test_no_part_of_a_paper_has_a_hostile_name(kind: str, name: str) -> None:
    entry: Any = next(iter(PAPER[kind].values()))
    write_yaml(Path("config/papers/toy.yaml"), PAPER | {kind: {**PAPER[kind], name: entry}})
    with pytest.raises(UserError, match=r"config/papers/toy\.yaml: .*is not a name") as caught:
        configuration.load_paper("toy")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["$(touch x)", "{x}", "-x"])
def test_no_paper_file_has_a_hostile_name(name: str) -> None:
    write_yaml(Path(f"config/papers/{name}.yaml"), PAPER)
    with pytest.raises(UserError, match="is not a name"):
        configuration.load_paper(name)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("value", ["../x", "a/b", "$(id)", "a\nb"])
def test_no_value_of_a_setting_leads_elsewhere(value: str) -> None:
    table = PAPER["tables"]["table1"] | {"settings": {"p": [value]}}
    settings = PAPER["settings"] | {"p": PAPER["settings"]["p"] | {"values": {value: 4}}}
    write_yaml(Path("config/papers/toy.yaml"), PAPER | {"tables": {"table1": table}, "settings": settings})
    with pytest.raises(UserError, match="the value of a setting has"):
        Plan(Config(paper="toy"), "toy").cells("table1")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("place", ["dataset", "network", "partition"])
def test_no_run_names_a_path(place: str) -> None:
    digits = PAPER["datasets"]["Digits"]
    changed = {
        "dataset": {"data": {"dataset": "../config/papers/toy"}},
        "network": {"network": {"name": "../x"}},
        "partition": {"data": {"dataset": "digits", "partition": {"rule": "../x"}}},
    }[place]
    write_yaml(
        Path("config/papers/toy.yaml"), PAPER | {"datasets": PAPER["datasets"] | {"Digits": digits | changed}}
    )
    with pytest.raises(UserError, match="is not a name"):
        Plan(Config(paper="toy"), "toy").cells("table1")


def test_the_data_folder_has_no_braces() -> None:
    with pytest.raises(ValueError, match="mean something to Snakemake"):
        Config(data_dir="data/{x}")
