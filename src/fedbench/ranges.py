"""Where hyper-parameters may lie, declared beside the field: ``lr: Positive``."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import Field
from pydantic.fields import FieldInfo

from fedbench.errors import UserError

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1)]
"""Of the newest gradient in a running mean."""
Memory = Annotated[float, Field(ge=0, lt=1)]
"""Share of the old that a running mean keeps: at 1 nothing is ever forgotten, and a step has no bound."""
Amplification = Annotated[float, Field(ge=1)]
Count = Annotated[int, Field(ge=1)]
NumberFrom0 = Annotated[int, Field(ge=0)]

KINDS = {float: "a number", int: "a whole number"}
RELATIONS = {
    "gt": ("above {:g}", operator.gt),
    "ge": ("{:g} or more", operator.ge),
    "le": ("at most {:g}", operator.le),
    "lt": ("less than {:g}", operator.lt),
}


class Range(NamedTuple):
    """What a field takes: the type of its values, pairs of a relation (:data:`RELATIONS`) and a bound, and whether it
    may be null too.
    """

    kind: Any
    bounds: tuple[tuple[str, float], ...] = ()
    optional: bool = False


@functools.lru_cache(maxsize=256)
def ranges_of(owner: type) -> Mapping[str, Range]:
    """Return what the fields of a dataclass take by their annotations; fields of a type that is not found take any."""
    try:
        hints = get_type_hints(owner, include_extras=True)
    except NameError:
        return {}
    return {name: _range(hint) for name, hint in hints.items()}


def _range(hint: Any) -> Range:
    if type(None) in get_args(hint):
        (kind,) = {*get_args(hint)} - {type(None)}
        return _range(kind)._replace(optional=True)
    if get_origin(hint) is not Annotated:
        return Range(hint)
    kind, *facts = get_args(hint)
    return Range(kind, tuple(bound for fact in facts for bound in _bounds(fact)))


def _bounds(fact: Any) -> Iterator[tuple[str, float]]:
    for part in fact.metadata if isinstance(fact, FieldInfo) else [fact]:
        yield from ((name, getattr(part, name)) for name in RELATIONS if hasattr(part, name))


def check_range(label: str, name: str, value: Any, wants: Range) -> None:
    """Refuse a value of another kind than a field takes, numbers that are not finite, and those out of its range.

    Raises:
        UserError: it is one; ``label`` names the method or the task.
    """
    if value is None and wants.optional:
        return
    if wants.kind in KINDS:
        numbers = int if wants.kind is int else int | float
        if isinstance(value, bool) or not isinstance(value, numbers):
            raise UserError(f"{label}: {name} is {KINDS[wants.kind]}, not {value!r}{_as_number(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{label}: {name} has to be a finite number, not {value}")
    if not all(RELATIONS[relation][1](value, bound) for relation, bound in wants.bounds):
        words = " and ".join(RELATIONS[relation][0].format(bound) for relation, bound in wants.bounds)
        raise UserError(f"{label}: {name} has to be {words}, not {value}")


def _as_number(value: object) -> str:
    """Say how YAML reads ``1e-1`` as a number: with a point before the exponent."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+e[+-]?\d+", value, flags=re.IGNORECASE):
        return f"; YAML takes {value} for a text, write {float(value)!r}"
    return ""
