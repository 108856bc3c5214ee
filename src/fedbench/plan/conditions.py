"""Conditions of a claim that something exists: comparisons of methods and numbers, in a small grammar of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fedbench.errors import UserError

OTHERS = "others"
Term = float | tuple[str, list[str]]
"""A number, or ``max`` or ``min`` of methods (of one alone, either)."""


class Expression:
    """A signed sum of numbers, methods, and max(...) or min(...) of methods."""

    def __init__(self, terms: Sequence[tuple[int, Term]]) -> None:
        self.terms = terms

    def value(self, values: Mapping[str, float]) -> float:
        """Evaluate it; NaN where a method has no value."""
        total = 0.0
        for sign, term in self.terms:
            if isinstance(term, float):
                total += sign * term
                continue
            found = [values.get(name, float("nan")) for name in term[1]]
            undefined = any(value != value for value in found)
            total += sign * (float("nan") if undefined else max(found) if term[0] == "max" else min(found))
        return total


class Condition:
    """``larger > smaller``: two expressions over the methods' values at one place."""

    def __init__(self, larger: Expression, smaller: Expression) -> None:
        self.larger, self.smaller = larger, smaller

    def slack(self, values: Mapping[str, float]) -> float:
        """By how much it is met, negative where it is not."""
        return self.larger.value(values) - self.smaller.value(values)


def conditions(text: str, methods: Sequence[str]) -> list[Condition]:
    """Parse e.g. ``max(others) < 0.1 and CLIMB - Baseline > 0.05``.

    comparison { "and" comparison }; comparison: sum (< | >) sum; sum: term { (+ | -) term }; term: a number, a method,
    or max or min of methods in parentheses. ``others`` are the methods that the text does not name.

    Raises:
        UserError: the text is none of that; the message says where.
    """
    names = sorted(methods, key=len, reverse=True)
    words = "|".join(map(re.escape, names)) or "(?!)"
    token = re.compile(
        rf"\s*(?:(?P<name>{words})(?![\w.])|(?P<number>\d*\.?\d+)|(?P<word>\w+)|(?P<sign>[-+<>(),]))"
    )
    parts: list[tuple[str, str]] = []
    place = 0
    while place < len(text.rstrip()):
        found = token.match(text, place)
        if found is None:
            raise UserError(
                f"condition {text!r}: {text[place:]!r} is no method, number or one of + - < > ( ) ,"
            )
        parts.append((str(found.lastgroup), found[str(found.lastgroup)]))
        place = found.end()
    named = {value for kind, value in parts if kind == "name"}
    return _Parser(text, parts, [name for name in methods if name not in named]).conditions()


class _Parser:
    """Reads the tokens of :func:`conditions` from left to right."""

    def __init__(self, text: str, parts: list[tuple[str, str]], others: list[str]) -> None:
        self.text, self.parts, self.others = text, parts, others

    def conditions(self) -> list[Condition]:
        found = [self.condition()]
        while self.parts:
            self.take("and")
            found.append(self.condition())
        return found

    def condition(self) -> Condition:
        left = self.sum()
        sign = self.take("<", ">")
        right = self.sum()
        return Condition(left, right) if sign == ">" else Condition(right, left)

    def sum(self) -> Expression:
        terms = [(1, self.term())]
        while self.parts and self.parts[0][1] in "+-":
            sign = 1 if self.take("+", "-") == "+" else -1
            terms.append((sign, self.term()))
        return Expression(terms)

    def term(self) -> Term:
        kind, value = self.parts.pop(0) if self.parts else ("", "its end")
        if kind == "number":
            return float(value)
        if kind == "name":
            return "max", [value]
        if value in ("max", "min"):
            self.take("(")
            named = self.name()
            while self.take(",", ")") == ",":
                named += self.name()
            return value, named
        raise UserError(f"condition {self.text!r}: unknown method {value!r}")

    def name(self) -> list[str]:
        kind, value = self.parts.pop(0) if self.parts else ("", "its end")
        if kind != "name" and value != OTHERS:
            raise UserError(f"condition {self.text!r}: unknown method {value!r}")
        return [value] if kind == "name" else self.others

    def take(self, *wanted: str) -> str:
        value = self.parts.pop(0)[1] if self.parts else "its end"
        if value not in wanted:
            raise UserError(f"condition {self.text!r}: {' or '.join(wanted)} expected, not {value!r}")
        return value
