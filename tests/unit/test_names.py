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

pytestmark = pytest.mark.usefixtures("project")
HOSTILE = [
    "$(touch x)",
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
DIGITS = PAPER["datasets"]["Digits"]
VALUES = ["../x", "a/b", "$(id)", "a\nb"]
PLACES: list[tuple[dict[str, Any], str]] = [
    *(
        ({kind: {**PAPER[kind], name: next(iter(PAPER[kind].values()))}}, "is not a name")
        for kind in ("tables", "figures", "methods", "datasets", "settings")
        for name in (HOSTILE if kind == "tables" else ["../x"])
    ),
    *(
        (
            {
                "tables": {"table1": PAPER["tables"]["table1"] | {"settings": {"p": [value]}}},
                "settings": PAPER["settings"] | {"p": PAPER["settings"]["p"] | {"values": {value: 4}}},
            },
            "the value of a setting has",
        )
        for value in VALUES
    ),
    *(
        ({"datasets": PAPER["datasets"] | {"Digits": DIGITS | changed}}, "is not a name")
        for changed in (
            {"data": {"dataset": "../config/papers/toy"}},
            {"network": {"name": "../x"}},
            {"data": {"dataset": "digits", "partition": {"rule": "../x"}}},
        )
    ),
]


@pytest.mark.parametrize(("changed", "says"), PLACES)
def test_no_name_in_a_paper_leads_elsewhere(changed: dict[str, Any], says: str) -> None:
    write_yaml(Path("config/papers/toy.yaml"), PAPER | changed)
    with pytest.raises(UserError, match=says) as caught:
        Plan(Config(paper="toy")).cells("table1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["$(touch x)", "{x}", "-x"])
def test_no_paper_file_has_a_hostile_name(name: str) -> None:
    write_yaml(Path(f"config/papers/{name}.yaml"), PAPER)
    with pytest.raises(UserError, match="is not a name"):
        configuration.load_paper(name)


def test_the_data_folder_has_no_braces() -> None:
    with pytest.raises(ValueError, match="mean something to Snakemake"):
        Config(data_dir="data/{x}")
