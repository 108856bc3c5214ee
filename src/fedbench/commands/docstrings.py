"""The docstrings of a model's keys, in its JSON Schema."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


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
