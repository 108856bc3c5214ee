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
    "$(touch x)", "../../x", "a b", "a;b", "-x", ".x", "{x}", "a\nb", "a/b", "`id`", "é", "", "x" * 101,
]  # fmt: skip
TABLE, DIGITS = PAPER["tables"]["table1"], PAPER["datasets"]["Digits"]


def named(kind: str, name: str) -> dict[str, Any]:
    """A part of the paper with an entry of a name."""
    return {kind: {**PAPER[kind], name: next(iter(PAPER[kind].values()))}}


def valued(value: str) -> dict[str, Any]:
    """A table at a value of a setting."""
    settings = PAPER["settings"] | {"p": PAPER["settings"]["p"] | {"values": {value: 4}}}
    return {"tables": {"table1": TABLE | {"settings": {"p": [value]}}}, "settings": settings}


def of_digits(**entry: Any) -> dict[str, Any]:
    return {"datasets": PAPER["datasets"] | {"Digits": DIGITS | entry}}


PLACES: list[tuple[dict[str, Any], str]] = [
    *((named("tables", name), "is not a name") for name in HOSTILE),
    *((named(kind, "../x"), "is not a name") for kind in ("figures", "methods", "datasets", "settings")),
    *((valued(value), "the value of a setting has") for value in ("../x", "a/b", "$(id)", "a\nb")),
    (of_digits(data={"dataset": "../config/papers/toy"}), "is not a name"),
    (of_digits(network={"name": "../x"}), "is not a name"),
    (of_digits(data={"dataset": "digits", "partition": {"rule": "../x"}}), "is not a name"),
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
