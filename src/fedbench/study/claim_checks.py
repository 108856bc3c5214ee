"""Mistakes in a paper's claims that can be known before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fedbench.errors import UserError, unknown
from fedbench.study.claims import ClaimSpec, Value
from fedbench.study.schema import FigureSpec, Paper, TableSpec


def claim_mistakes(paper: Paper) -> Iterator[str]:
    """Name what the claims call by a name that the paper does not have."""
    for name in paper.proposes:
        if name not in paper.methods:
            yield f"proposes: {unknown('method', name, paper.methods)}"
    for number, claim in enumerate(paper.claims, 1):
        try:
            _check(paper, claim)
        except UserError as error:
            yield f"claims: {number} ({claim.says}): {error}"


def _check(paper: Paper, claim: ClaimSpec) -> None:
    specs = paper.targets
    for target in claim.targets:
        _known("table or figure", target, specs)
        if specs[target].kind == "data":
            raise UserError(f"{target} shows datasets, not results")
    for method in claim.methods():
        _known("method", method, paper.methods)
    for name, values in (*claim.only.items(), *claim.settings()):
        _known("setting", name, ["dataset", *paper.settings])
        for value in values:
            _known(f"value of {name}", str(value), map(str, _values(paper, specs.values(), name)))
    paper.measure(claim.metric)
    along = claim.trend.along if claim.trend else None
    if along and len(_values(paper, [specs[target] for target in claim.targets], along)) < 2:
        raise UserError(f"{', '.join(claim.targets)} has one {along} only, so there is no trend to judge")


def _values(paper: Paper, shown: Iterable[TableSpec | FigureSpec], name: str) -> list[Value]:
    """Return the values that a setting, or the dataset, takes in tables and figures."""
    if name == "dataset":
        return list(paper.datasets)
    default = [paper.settings[name].default]
    return list(dict.fromkeys(value for spec in shown for value in spec.settings.get(name, default)))


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in (names := list(known)):
        raise unknown(kind, name, names)
