"""The base of all specifications: immutable, strict, and dumped so that a new field leaves old keys unchanged."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import ErrorDetails

from fedbench.errors import UserError, shortened, visible

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
_VALUE = re.compile(r"[A-Za-z0-9_.+-][A-Za-z0-9._+ -]{0,99}")
_SHOULD = "Input should be "
MISTAKES = 5
"""The most mistakes of a file that a message names."""


def named(text: str) -> str:
    """Return ``text`` if it is a name that may stand in a path and on a command line; else raise ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{shortened(text, 60)!r} is not a name: use letters, digits, '.', '_', '+' and '-', and begin with a "
            "letter, a digit or '_'"
        )
    return text


def as_value(value: Any) -> Any:
    """Return a setting's value if it may be a part of a path; else raise ValueError."""
    if isinstance(value, str) and (not _VALUE.fullmatch(value) or ".." in value):
        raise ValueError(
            f"{shortened(value, 60)!r}: the value of a setting has letters, digits, '.', '_', '+', '-', spaces"
        )
    return value


Name = Annotated[str, AfterValidator(named)]


class Spec(BaseModel):
    """Base of all specifications: immutable, and an unknown key is an error.

    Attributes:
        added_later: fields that were added after runs had been stored. The dump leaves such a field out where it equals
            its default, so that the keys of older runs do not change.
        reads: for a specification with a field `rule`: the fields that each rule reads. A field that no rule names
            always counts; for a rule that is not listed, all fields count.
        elsewhere: keys that users may look for here, and where they belong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    added_later: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[dict[str, tuple[str, ...]]] = {}
    elsewhere: ClassVar[dict[str, str]] = {}

    @model_serializer(mode="wrap")
    def _without_late(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = dump(self)
        for name, default in _late_defaults(type(self)):
            if getattr(self, name) == default:
                dumped.pop(name, None)
        return dumped

    @functools.cached_property
    def canonical(self) -> str:
        """The specification as canonical JSON, whose digests are keys."""
        return canonical_json(self.model_dump(mode="json"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, without the cached properties, which were computed from the old values."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


@functools.cache
def _late_defaults(spec: type[Spec]) -> list[tuple[str, Any]]:
    fields = spec.model_fields
    return [(name, fields[name].get_default(call_default_factory=True)) for name in spec.added_later]


def canonical_json(value: Any) -> str:
    """Return ``value`` as canonical JSON: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def mapping_of(texts: Mapping[str, str]) -> str:
    """Return the canonical JSON of a mapping whose values are canonical JSON."""
    return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"


def digest(value: Any) -> str:
    """Return 16 hex digits of the SHA-256 of ``value`` as canonical JSON."""
    return digest_of(canonical_json(value))


def digest_of(text: str) -> str:
    """Return 16 hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: Any, source: str | Path) -> Model:
    """Validate ``data`` as ``model``.

    Raises:
        UserError: ``data`` do not fit; the message names the ``source`` and the key of each mistake.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = []
        for item in _merged(error.errors(), data):
            where = shortened(".".join(str(part) for part in item["loc"]))
            if item["type"] == "extra_forbidden":
                lines.append(f"{where}: unknown key.{_hint(model, item['loc'])}")
            else:
                given = "" if item["type"] == "missing" else f" (got {shortened(repr(item['input']))})"
                place = f"{where}: " if where else ""  # the mistake may lie in several keys together
                lines.append(f"{place}{item['msg'].removeprefix('Value error, ')}{given}")
        more = f"; and {len(lines) - MISTAKES} more" if len(lines) > MISTAKES else ""
        raise UserError(visible(f"{source}: " + "; ".join(lines[:MISTAKES]) + more)) from None


def _merged(items: list[ErrorDetails], data: Any) -> list[ErrorDetails]:
    """Merge the mistakes that pydantic lists for each type of a union: their places extend the place of the value."""
    mistakes: dict[tuple[int | str, ...], ErrorDetails] = {}
    for item in items:
        place = _place(item["loc"], data)
        first = mistakes.get(place)
        if item["type"] in ("missing", "extra_forbidden") or place == item["loc"]:
            mistakes[item["loc"]] = item
        elif first is None:
            mistakes[place] = {**item, "loc": place}
        elif item["msg"].startswith(_SHOULD):
            first["msg"] += f" or {item['msg'].removeprefix(_SHOULD)}"
    return [*mistakes.values()]


def _place(loc: tuple[int | str, ...], data: Any) -> tuple[int | str, ...]:
    """Return the longest beginning of ``loc`` that leads to a value in ``data``."""
    for depth, part in enumerate(loc):
        known = (
            part in data
            if isinstance(data, Mapping)
            else isinstance(data, list | tuple) and part in range(len(data))
        )
        if not known:
            return loc[:depth]
        data = data[part]
    return loc


def _hint(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """Say which known key an unknown key may be, or where it belongs, in a sentence."""

    def near_by(places: list[str]) -> list[str]:
        return [place for place in places if place.split(".")[0] == loc[0]]

    key, known = str(loc[-1]), _places(model)
    belongs = [place for place in known.pop(key, []) if place]
    rivals = [name for name, places in known.items() if not belongs or near_by(places)]
    near = difflib.get_close_matches(key, rivals, n=1)
    if near and not near_by(belongs):
        return f" Did you mean {near[0]!r}?"
    return f" It belongs under {' or '.join((near_by(belongs) or belongs)[:3])}" if belongs else ""


def _places(model: type[BaseModel]) -> dict[str, list[str]]:
    """Return the places of each key in a model and the models inside it, the outermost first; "" is the model."""
    places, todo, seen = dict[str, list[str]](), [(model, "")], {model}
    for current, under in todo:
        for key, belongs in getattr(current, "elsewhere", {}).items():
            places.setdefault(key, []).append(under + belongs)
        for name, field in current.model_fields.items():
            places.setdefault(field.alias or name, []).append(under.removesuffix("."))
            parts = _types_in(field.annotation)
            names = "NAME." if any(get_origin(part) is dict for part in parts) else ""
            for part in parts:
                if isinstance(part, type) and issubclass(part, BaseModel) and part not in seen:
                    seen.add(part)
                    todo.append((part, f"{under}{field.alias or name}.{names}"))
    return places


def _types_in(annotation: Any) -> list[Any]:
    inner = [part for arg in getattr(annotation, "__args__", ()) for part in _types_in(arg)]
    return [annotation, *inner]
