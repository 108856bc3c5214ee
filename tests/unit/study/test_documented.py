"""What can be said of data in a YAML is in the documentation, with all its values."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from fedbench import registry
from fedbench.data import partitions
from fedbench.spec import ImbalanceSpec, LabelSpec

DOCS = (Path(__file__).parents[3] / "docs/reference/rules.md").read_text(encoding="utf-8")
RULES = {
    "labels": typing.get_args(LabelSpec.model_fields["rule"].annotation),
    "imbalance": typing.get_args(ImbalanceSpec.model_fields["rule"].annotation),
    "partition": registry.names(partitions),
}


@pytest.mark.parametrize("part", RULES)
def test_every_rule_has_its_line(part: str) -> None:
    section = DOCS.partition(f"| `{part}` |")[2].partition("\n\n")[0]
    assert [rule for rule in RULES[part] if f"| `rule: {rule}`" not in section] == []
