"""``fedbench schema``: editors accept every shipped file, mark mistakes, and every key says what it means."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fedbench.commands import schema
from fedbench.study.configuration import paper_keys, study_path

ROOT = Path(__file__).parents[3]
SHIPPED = [
    ("config", ROOT / "config/config.yaml"),
    *(("study", ROOT / study_path(key)) for key in paper_keys()),
    *(("scale", path) for path in sorted((ROOT / "config/scales").glob("*.yaml"))),
]


VALIDATORS = {kind: jsonschema.Draft202012Validator(schema.schema(kind)) for kind in schema.FILES}


@pytest.mark.parametrize("kind", schema.FILES)
def test_it_is_a_schema_and_json_in_which_every_key_says_what_it_means(kind: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    made = json.loads(schema.text_of(kind), parse_constant=refuse)
    jsonschema.Draft202012Validator.check_schema(made)
    parts = {kind: made, **made["$defs"]}
    keys = {(part, name): key for part in parts for name, key in parts[part].get("properties", {}).items()}
    assert [place for place, key in keys.items() if not key.get("description")] == []


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda part: getattr(part, "stem", part))
def test_shipped_files_are_right_and_name_their_schema(kind: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    VALIDATORS[kind].validate(yaml.safe_load(text))
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / schema.FOLDER / f"{kind}.json"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("tabels", {}),
        ("defaults.data.cleints", 3),
        ("defaults.data.imbalance.rule", "minoritty"),
        ("defaults.train.weight_decay", -1.0),
        ("tables.table1.rows", "rho"),
        ("key", "climb"),  # which fedbench fills in
    ],
)
def test_a_mistake_is_marked_where_it_is(place: str, value: Any) -> None:
    study = yaml.safe_load((ROOT / "config/papers/climb.yaml").read_text(encoding="utf-8"))
    *parents, last = place.split(".")
    functools.reduce(lambda inner, name: inner[name], parents, study)[last] = value
    assert not VALIDATORS["study"].is_valid(study)


def test_what_is_committed_is_what_the_code_says() -> None:
    cure = "run `fedbench schema --write`"
    for kind in schema.FILES:
        committed = (ROOT / schema.FOLDER / f"{kind}.json").read_text(encoding="utf-8")
        assert committed == schema.text_of(kind), cure
    assert (ROOT / schema.REFERENCE).read_text(encoding="utf-8") == schema.reference(), cure
