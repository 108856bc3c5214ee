"""The frames of numbers and their columns, written down as the classes of their rows: of runs, of cells, of tables.

:class:`Row` is a number of a run, trained here or shipped, from which every other is made; :class:`Measured` what the
seeds of a cell give; :class:`Compared` that beside print, as a table has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
import pandas as pd

from fedbench.plan.schema import Value
from fedbench.results.places import Place

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
NUMBER = ("place", "method", "metric")
"""Columns that tell the numbers of a study apart: dataset and setting, method, metric."""


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
        study: whose cell it is.
        scale: at which it ran.
        place: dataset and setting, all of them.
        method: its name in the study.
        cell: the key of its cell.
        planned: how many seeds of the cell are wanted.
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
    study: str = ""
    scale: str = ""
    place: Place = ()
    method: str = ""
    cell: str = ""
    planned: int = 0


Run = Mapping[str, Row]
"""The rows of a run by metric."""


@dataclass
class Measured:
    """What the seeds of a cell give of a metric, or why there is no number.

    Attributes:
        scale: at which the cell ran.
        place: dataset and setting.
        method: its name.
        metric: its name.
        status: ``finished``, or what became of it.
        reason: why it is not finished.
        n_wanted: how many seeds are wanted.
        n_bad: how many of them diverged or failed.
        values: the metric of each run that ended by its seed: NaN where it is undefined, infinite where a target was
            not reached.
        paces: how much it still changed when the run ended, where that is known.
        signs: the word of :mod:`~fedbench.results.idle` for what shows that a run learned nothing.
        device_mean: the mean over the clients' own models, over seeds.
        device_variance: their variance, over seeds.
        floats_up: what a run costs, the mean over seeds; so ``floats_down``, ``samples`` and ``seconds``.
        equal_costs: which of those all seeds share.
        key: of the cell.
        commit: of the code.
        hardware: what its runs ran on.
        shipped: whether some of its seeds came with the repository.
        source: the files it was read from.
        n_seeds: how many seeds ended as they should.
        mean: over the seeds there are, NaN unless finished or incomplete.
        std: likewise (ddof 1), NaN for one seed.
        pace: the mean over seeds.
        idle: the seeds that learned nothing by the word of ``signs``, in which an AUC of 0.5 shows it, too.
        partly: whether not all seeds of a shipped number were shipped.
    """

    scale: str = ""
    place: Place = ()
    method: str = ""
    metric: str = ""
    status: str = NOT_RUN
    reason: str = ""
    n_wanted: int = 0
    n_bad: int = 0
    values: Mapping[int, float] = field(default_factory=dict)
    paces: Mapping[int, float] = field(default_factory=dict)
    signs: Mapping[int, str] = field(default_factory=dict)
    device_mean: float = NAN
    device_variance: float = NAN
    floats_up: float = NAN
    floats_down: float = NAN
    samples: float = NAN
    seconds: float = NAN
    equal_costs: str = ""
    key: str = ""
    commit: str = ""
    hardware: str = ""
    shipped: bool = False
    source: str = ""
    n_seeds: int = 0
    mean: float = NAN
    std: float = NAN
    pace: float = NAN
    idle: Mapping[str, list[int]] = field(default_factory=dict)
    partly: bool = False


@dataclass
class Printed:
    """A number of a paper, NaN where nothing is printed.

    Attributes:
        printed: the number.
        printed_text: its digits as printed (0.801 for 80.1 per cent).
        printed_std: the printed ±.
        printed_std_text: its digits.
        note: what is said of it.
        doubt: the note of a cell that the transcription flags, empty otherwise.
        spread: what the printed ± is (``std`` over runs, ``device variance``, ``none``).
        print_seeds: over how many runs it is.
        comparable_std: the printed ± where it is a standard deviation over runs.
        print_digits: how many decimals its table prints.
    """

    printed: float = NAN
    printed_text: str = ""
    printed_std: float = NAN
    printed_std_text: str = ""
    note: str = ""
    doubt: str = ""
    spread: str = ""
    print_seeds: float = NAN
    comparable_std: float = NAN
    print_digits: float = NAN


@dataclass
class Compared(Printed, Measured):
    """A number of a table: ours, print, and what both say.

    Attributes:
        at: the value of each axis.
        dataset: one of them.
        where: the axes that vary, in words.
        slope: whether it is the slope along a setting.
        of_scale: whether the scale runs it.
        shown: whether there is a number of ours, or will be.
        moving: by how much it was still changing, in words; empty where that is not known or no matter.
        spread_counted: the spread that verdicts take: at least what the steps of the metric give.
        label: what its metric is called.
        sign: of its metric, 1 where higher is better, else -1.
        matters: the smallest difference of its metric that matters.
        digits: how many decimals are shown.
        has_print: whether its table prints it.
        difference: ours minus print, NaN where nothing is compared.
        half_width: of the interval of the difference.
        verdict: a word of :mod:`~fedbench.report.numbers.verdicts`.
        basis: what the verdict rests on where it is one seed.
        tau: Kendall's, of the methods it competes with, NaN where there is none.
        ordered: over how many of them.
        methods: of how many.
        on_edge: whether it was made with a tuned value at the end of what was tried.
        best: whether it is the best of its methods.
        printed_best: whether its print is.
        second: whether it is a second metric in its place.
    """

    at: Mapping[str, Value] = field(default_factory=dict)
    dataset: str = ""
    where: str = ""
    slope: bool = False
    of_scale: bool = False
    shown: bool = False
    moving: str = ""
    spread_counted: float = NAN
    label: str = ""
    sign: int = 1
    matters: float = NAN
    digits: int = 3
    has_print: bool = False
    difference: float = NAN
    half_width: float = NAN
    verdict: str = ""
    basis: str = ""
    tau: float = NAN
    ordered: int = 0
    methods: int = 0
    on_edge: bool = False
    best: bool = False
    printed_best: bool = False
    second: bool = False


Kind = TypeVar("Kind")


def columns_of(kind: type) -> dict[str, type]:
    """Return the names and types of a frame's columns, given the class of its rows."""
    return get_type_hints(kind)


def frame_of(rows: Iterable[Any], columns: type | Mapping[str, Any]) -> pd.DataFrame:
    """Return rows as a frame.

    Columns of one type stand together and lie in one array, what is no int, float or bool as objects: on an array for
    each column pandas works many times as long.

    Args:
        rows: tuples, or objects of the class that ``columns`` is.
        columns: the class of the rows, else names and types.
    """
    of_class = isinstance(columns, type) and dataclasses.is_dataclass(columns)
    types = columns_of(columns) if isinstance(columns, type) else columns
    values = [[getattr(row, name) for name in types] for row in rows] if of_class else [*rows]
    of_kind = dict[type, dict[str, int]]()
    for at, (name, kind) in enumerate(types.items()):
        of_kind.setdefault(kind if kind in (int, float, bool) else object, {})[name] = at
    table = np.empty((len(values), len(types)), dtype=object)
    if values:
        table[:] = values
    parts = [
        pd.DataFrame(table[:, [*of.values()]].astype(kind), columns=[*of], dtype=kind)
        for kind, of in of_kind.items()
    ]
    return pd.concat(parts, axis=1)


def records(frame: pd.DataFrame, kind: type[Kind]) -> list[Kind]:
    """Return the rows of a frame as objects of their class; columns that the frame lacks have their defaults."""
    names = [name for name in columns_of(kind) if name in frame]
    rows = frame[names].itertuples(index=False, name=None)
    return [kind(**dict(zip(names, row, strict=True))) for row in rows]


def device_metrics(metric: str) -> tuple[str, str]:
    """Name the mean and the variance of a metric over the clients' own models."""
    return f"device_mean_{metric}", f"device_var_{metric}"
