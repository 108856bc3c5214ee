"""What is said of cells whose hyper-parameters no trial chose on their dataset: they say nothing of the best method."""

from __future__ import annotations

from collections.abc import Sequence

from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan

NAMED = 4
"""Methods of a dataset that are named; more are counted."""


def methods_by_dataset(cells: Sequence[Cell]) -> str:
    """Name the methods of cells by their dataset: ``Digits: CoDA, FedAvg and 3 more; MNIST: CoDA``."""
    texts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        names = list(dict.fromkeys(cell.method for cell in cells if cell.dataset == dataset))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        texts.append(f"{dataset}: {', '.join(names[:NAMED])}{more}")
    return "; ".join(texts)


def warning(plan: Plan, cells: Sequence[Cell]) -> str:
    """Say in one line which of the cells of a plan are not tuned, and the cure; empty where all are."""
    not_tuned = plan.untuned(cells)
    if not not_tuned:
        return ""
    return (
        f"warning: {len(not_tuned)} of {len(cells)} cells are not tuned for their dataset "
        f"({methods_by_dataset(not_tuned)}): the order of methods will say nothing. "
        f"First: fedbench tune {not_tuned[0].dataset} --paper {plan.study.key}"
    )
