"""``test_auc@sites`` in a table or figure: one metric for each site of its datasets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fedbench.errors import UserError
from fedbench.study.schema import FigureSpec, Paper, TableSpec

EVERY = "@sites"
Shown = TypeVar("Shown", TableSpec, FigureSpec)


def expanded(paper: Paper, folder: Path) -> Paper:
    """Return a paper whose tables and figures name the sites where they said ``@sites``.

    A dataset that is not here keeps its ``@sites``: that it is missing is said when it is prepared.
    """
    tables = {name: _named(paper, spec, folder) for name, spec in paper.tables.items()}
    figures = {name: _named(paper, spec, folder) for name, spec in paper.figures.items()}
    return paper.model_copy(update={"tables": tables, "figures": figures})


def _named(paper: Paper, spec: Shown, folder: Path) -> Shown:
    if not any(metric.endswith(EVERY) for metric in spec.metrics):
        return spec
    sites = list(dict.fromkeys(_sites(paper, spec.datasets, folder))) or [EVERY[1:]]
    metrics = [
        f"{metric.removesuffix(EVERY)}@{site}" if metric.endswith(EVERY) else metric
        for metric in spec.metrics
        for site in sites
    ]
    return spec.model_copy(update={"metrics": list(dict.fromkeys(metrics))})


def _sites(paper: Paper, labels: Sequence[str], folder: Path) -> Iterator[str]:
    from fedbench.data.sites import site_names  # the paths of most commands do without the data

    common: Mapping[str, Any] = paper.defaults.get("data") or {}
    for label in labels:
        data = {**common, **paper.datasets[label].data}
        with contextlib.suppress(UserError):
            yield from site_names([data.get("dataset", ""), *data.get("sources", ())], folder) or ()
