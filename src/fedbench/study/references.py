"""``references: [local, pooled]`` at a table or figure: what is trained without federation, beside what is."""

from __future__ import annotations

from typing import TypeVar

from fedbench.study.entries import SettingEntry
from fedbench.study.schema import FigureSpec, Paper, TableSpec

TRAINING, FEDERATED = "training", "federated"
"""The setting that tells federated runs and their references apart, and its default."""
Shown = TypeVar("Shown", TableSpec, FigureSpec)


def gain_over(reference: str) -> str:
    """Return what the setting calls federated minus a reference."""
    return f"gain over {reference}"


GAINS = tuple(map(gain_over, ("local", "pooled")))


def expanded(paper: Paper) -> Paper:
    """Return a study with the setting ``training``, if a table or figure of it asks for references.

    ``local`` and ``pooled`` are values of it like any other, with the hyper-parameters of the federated run. Local runs
    keep no model, as each has several.
    """
    if not any(spec.references for spec in paper.targets.values()):
        return paper
    kept = {"local": {"reference": "local", "keep_model": None}, "pooled": {"reference": "pooled"}}
    training = SettingEntry(
        sets=["train"], default=FEDERATED, label=TRAINING, values={FEDERATED: {"reference": None}, **kept}
    )
    return paper.model_copy(
        update={
            "settings": {**paper.settings, TRAINING: training},
            "tables": {name: _placed(_with_values(spec)) for name, spec in paper.tables.items()},
            "figures": {name: _with_values(spec) for name, spec in paper.figures.items()},
        }
    )


def _with_values(spec: Shown) -> Shown:
    if not spec.references:
        return spec
    values = {TRAINING: [*spec.references, FEDERATED]}
    return spec.model_copy(update={"settings": {**spec.settings, **values}})


def _placed(spec: TableSpec) -> TableSpec:
    """Make the setting the columns of a table that does not place it: what these were goes above the rows."""
    if not spec.references or TRAINING in (*spec.rows, *spec.columns):
        return spec
    return spec.model_copy(update={"rows": [*spec.columns, *spec.rows], "columns": [TRAINING]})
