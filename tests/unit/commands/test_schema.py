"""``fedbench schema``: editors accept every shipped file, mark mistakes, and every key says what it means."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def validators() -> dict[str, jsonschema.Draft202012Validator]:
    return {kind: jsonschema.Draft202012Validator(schema.schema(kind)) for kind in schema.FILES}


@pytest.mark.parametrize("kind", schema.FILES)
def test_it_is_a_schema_and_json(kind: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    jsonschema.Draft202012Validator.check_schema(json.loads(schema.text_of(kind), parse_constant=refuse))


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda part: getattr(part, "stem", part))
def test_shipped_files_are_right_and_name_their_schema(
    kind: str, path: Path, validators: dict[str, jsonschema.Draft202012Validator]
) -> None:
    text = path.read_text(encoding="utf-8")
    validators[kind].validate(yaml.safe_load(text))
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / schema.FOLDER / f"{kind}.json"


MISTAKES: dict[str, tuple[str, Any]] = {
    "unknown key": ("tabels", {}),
    "unknown key of a piece": ("defaults.data.cleints", 3),
    "rule that does not exist": ("defaults.data.imbalance.rule", "minoritty"),
    "number out of its range": ("defaults.train.weight_decay", -1.0),
    "text for a list": ("tables.table1.rows", "rho"),
    "key that fedbench fills in": ("key", "climb"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_marked_where_it_is(
    mistake: str, validators: dict[str, jsonschema.Draft202012Validator]
) -> None:
    study = yaml.safe_load((ROOT / "config/papers/climb.yaml").read_text(encoding="utf-8"))
    place, value = MISTAKES[mistake]
    *parents, last = place.split(".")
    inner = study
    for name in parents:
        inner = inner[int(name) if name.isdigit() else name]
    inner[last] = value
    assert not validators["study"].is_valid(study)


@pytest.mark.parametrize("kind", schema.FILES)
def test_every_key_says_what_it_means(kind: str) -> None:
    made = schema.schema(kind)
    parts = {kind: made, **made["$defs"]}
    keys = {(part, name): key for part in parts for name, key in parts[part].get("properties", {}).items()}
    assert [place for place, key in keys.items() if not key.get("description")] == []


def test_what_is_committed_is_what_the_code_says() -> None:
    cure = "run `fedbench schema --write`"
    for kind in schema.FILES:
        committed = (ROOT / schema.FOLDER / f"{kind}.json").read_text(encoding="utf-8")
        assert committed == schema.text_of(kind), cure
    assert (ROOT / schema.REFERENCE).read_text(encoding="utf-8") == schema.reference(), cure
