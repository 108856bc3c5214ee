"""Numbers of single runs, trained here or shipped, from which every other is made: a row for each run and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pandas as pd

FINISHED, INCOMPLETE, DIVERGED, FAILED, NOT_RUN, UNDEFINED, NOT_REACHED = (
    "finished",
    "incomplete",
    "diverged",
    "failed",
    "not run",
    "undefined",
    "not reached",
)
AVERAGED = "averaged"
"""The status of a row whose value is the mean over the seeds of its cell, as those of single runs were not kept."""
COSTS = ("floats_up", "floats_down", "samples", "seconds")
"""What a run costs: numbers that a client sends, and receives; samples that all clients draw; time."""
NAN = float("nan")
HERE, SHIPPED = "here", "shipped"
"""Where a run was trained."""


class Row(NamedTuple):
    """A number of a run; costs are metrics like any other.

    Attributes:
        key: the run's key; a fitted exponent has those of its budgets' runs, separated by blanks.
        seed: the run's seed.
        metric: what was measured; empty where the run broke, which then has this row alone.
        value: NaN where it is undefined, infinite where a target was not reached.
        status: finished, averaged, undefined, diverged or failed; not run where runs lack.
        reason: why it is that, or how near it came to a target.
        pace: how much the metric still changed in the last fifth of training, NaN where it is not known.
        sign: the word of :mod:`idle` for what shows that the run learned nothing, else empty.
        commit: of the code that made it; several are separated by blanks.
        hardware: what it ran on; several are separated by semicolons.
        source: the file it was read from, with the line of one that was shipped.
        tried: of a target, how much the run spent as a whole, NaN where it is not known.
        origin: trained here or shipped; empty in a row that says why runs of its cell lack.
    """

    key: str
    seed: int
    metric: str
    value: float = NAN
    status: str = FINISHED
    reason: str = ""
    pace: float = NAN
    sign: str = ""
    commit: str = ""
    hardware: str = ""
    source: str = ""
    tried: float = NAN
    origin: str = HERE


Run = Mapping[str, Row]
"""The rows of a run by metric."""
OF_ROW: dict[str, type] = get_type_hints(Row)
"""The types of its columns."""


def frame_of(rows: Iterable[Sequence[Any]], columns: Mapping[str, type]) -> pd.DataFrame:
    """Return rows as a frame with the types of its ``columns``, which are no numbers unless they are int, float, bool.

    Columns of one type stand together and lie in one array, texts as objects: on an array for each column pandas works
    many times as long.
    """
    rows, of_kind = [*rows], dict[type, dict[str, int]]()
    for at, (name, kind) in enumerate(columns.items()):
        of_kind.setdefault(kind if kind in (int, float, bool) else object, {})[name] = at
    table = np.empty((len(rows), len(columns)), dtype=object)
    if rows:
        table[:] = rows
    parts = [
        pd.DataFrame(table[:, [*of.values()]].astype(kind), columns=[*of], dtype=kind)
        for kind, of in of_kind.items()
    ]
    return pd.concat(parts, axis=1)


def records(frame: pd.DataFrame) -> list[Any]:
    """Return the rows of a frame as objects with the columns as attributes, which can go to another process."""
    rows = frame.itertuples(index=False, name=None)
    return [SimpleNamespace(**dict(zip(frame.columns, row, strict=True))) for row in rows]


def device_metrics(metric: str) -> tuple[str, str]:
    """Name the mean and the variance of a metric over the clients' own models."""
    return f"device_mean_{metric}", f"device_var_{metric}"
