"""``fedbench schema``: JSON Schemas of the YAML files that users write, for editors."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from fedbench import algorithms, files, models, registry, tasks
from fedbench.data import datasets, partitions
from fedbench.data.custom.spec import OwnSpec
from fedbench.spec import RunSpec
from fedbench.study.schema import Config, Paper, Scale

FOLDER = Path("config/schema")
FILES: dict[str, tuple[type[BaseModel], str]] = {
    "config": (Config, "config/config.yaml"),
    "study": (Paper, "config/papers/NAME.yaml"),
    "scale": (Scale, "config/scales/NAME.yaml"),
    "dataset": (OwnSpec, "config/datasets/NAME.yaml"),
}
"""Each kind of file: the model that reads it, and where it lies."""
FILLED_IN = "Filled in by fedbench"
"""How the description of a key begins that no user writes."""
Schema = dict[str, Any]


def schema(kind: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a kind of file in :data:`FILES`.

    A study that ``extends`` another repeats only what it changes, so that no key of an entry is required.
    """
    made = described(kind)
    if kind == "study":
        for name in ("DatasetEntry", "MethodEntry", "SettingEntry", "TableSpec", "FigureSpec", "TuneSpec"):
            del made["$defs"][name]["required"]
        made["anyOf"] = [{"required": ["extends"]}, {"required": made.pop("required")}]
    return made


def described(kind: str) -> Schema:
    """Return the schema in which every key stands that an entry by itself needs."""
    model = FILES[kind][0]
    made = model.model_json_schema(schema_generator=WithDocstrings)
    parts = _parts() if any("piece" in part for part in _objects(made)) else {}
    made["$defs"] = {**made.get("$defs", {}), **parts}
    for part in _objects(made):
        if isinstance(part.get("title"), str):  # pydantic's; a key called title is an object
            del part["title"]
        if part.get("default") == math.inf:  # JSON has no infinity
            del part["default"]
        if "piece" in part:
            name = part.pop("piece")
            part.pop("type")
            part["$ref"] = f"#/$defs/part_{name}"
        _without_filled_in(part)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _objects(part: Any) -> Iterator[Schema]:
    """Go through all objects of a schema."""
    if isinstance(part, dict):
        yield part
    if isinstance(part, dict | list):
        for inner in [*part.values()] if isinstance(part, dict) else part:
            yield from _objects(inner)


def _without_filled_in(part: Schema) -> None:
    """Take away the keys that no user writes."""
    for name, key in [*part.get("properties", {}).items()]:
        if isinstance(key, dict) and str(key.get("description", "")).startswith(FILLED_IN):
            del part["properties"][name]
            part["required"] = [other for other in part.get("required", []) if other != name]


def _parts() -> dict[str, Schema]:
    """Return a run specification and all it consists of as pieces: no key is required, and ``null`` takes one away."""
    specs: dict[str, Schema] = copy.deepcopy(
        RunSpec.model_json_schema(schema_generator=WithDocstrings)["$defs"]
    )
    _offer(specs)
    for spec in specs.values():
        spec.pop("required", None)
        spec["properties"] = {
            name: {"anyOf": [key, {"type": "null"}], "description": key.get("description", "")}
            for name, key in spec["properties"].items()
        }
    specs["StartSpec"]["properties"]["cell"] = {
        "type": "object",
        "description": "The cell whose final model is taken: `method`, `dataset`, `setting`. Default: as in this cell.",
    }
    for part in _objects(specs):
        if "$ref" in part:
            part["$ref"] = part["$ref"].replace("#/$defs/", "#/$defs/part_")
    return {f"part_{name}": spec for name, spec in specs.items()}


def _offer(specs: dict[str, Schema]) -> None:
    """Offer the names that are known; others are right too, as they may be another package's."""
    offered = {
        ("RunSpec", "method"): registry.names(algorithms),
        ("NetworkSpec", "name"): registry.names(models),
        ("TaskSpec", "name"): registry.names(tasks),
        ("DataSpec", "dataset"): datasets.names(described=False),
        ("PartitionSpec", "rule"): registry.names(partitions),
    }
    for (spec, name), known in offered.items():
        key = specs[spec]["properties"][name]
        key["anyOf"] = [{"enum": known}, {"type": key.pop("type")}]


def text_of(kind: str) -> str:
    """Return the schema as the text of a file: a line for each definition and for each key of the file."""
    made = schema(kind)

    def lines(name: str) -> str:
        inner = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in made.pop(name).items())
        return f' "{name}": {{\n' + ",\n".join(inner) + "\n }"

    tables = [lines(name) for name in ("properties", "$defs")]
    facts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
    return "{\n" + ",\n".join([*facts, *tables]) + "\n}\n"


def write_schemas() -> list[Path]:
    """Write all schemas and return their paths."""
    return [files.write(FOLDER / f"{kind}.json", text_of(kind)) for kind in FILES]


@functools.cache
def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each key of a model, read from its source and that of the models it extends.

    Pydantic can do so whenever a model is imported (``use_attribute_docstrings``), which is half of the time that all
    of fedbench takes to import.
    """
    above = [
        docstrings(base) for base in model.__bases__ if issubclass(base, BaseModel) and base is not BaseModel
    ]
    said = {name: text for texts in above for name, text in texts.items()}
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(model))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for key, text in itertools.pairwise(tree.body):
        match key, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                said[name] = inspect.cleandoc(words)
    return said


class WithDocstrings(GenerateJsonSchema):
    """Generates schemas in which each key has its docstring."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Generate the schema of a model, with the descriptions of its keys."""
        made = super().model_schema(schema)
        texts, fields = docstrings(schema["cls"]), schema["cls"].model_fields
        for name in texts.keys() & fields.keys():
            made["properties"][fields[name].alias or name]["description"] = texts[name]
        return made
