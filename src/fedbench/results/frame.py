"""What a number passes through, each column with its type and meaning.

:class:`Row` is a number of a run, trained here or shipped, from which every other is made; :class:`Measured` is what
the seeds of a cell give; :class:`Compared` holds that against print and is a row of the frame of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_type_hints

import pandas as pd

from fedbench.results.places import Place
from fedbench.study.schema import Value

FINISHED, INCOMPLETE, DIVERGED, FAILED = "finished", "incomplete", "diverged", "failed"
NOT_RUN, UNDEFINED, NOT_REACHED = "not run", "undefined", "not reached"
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
    """A number of a run; costs are metrics like any other."""

    key: str  # the run's key; a fitted exponent has those of its budgets' runs, separated by blanks
    seed: int  # the run's seed
    metric: str  # what was measured; empty where the run broke, which then has this row alone
    value: float = NAN  # NaN where it is undefined, infinite where a target was not reached
    status: str = FINISHED  # finished, averaged, undefined, diverged or failed; not run where runs lack
    reason: str = ""  # why it is that, or how near it came to a target
    pace: float = NAN  # how much the metric still changed in the last fifth of training, NaN if not known
    sign: str = ""  # the word of :mod:`run_facts` for what shows that the run learned nothing, else empty
    commit: str = ""  # of the code that made it; several are separated by blanks
    hardware: str = ""  # what it ran on; several are separated by semicolons
    source: str = ""  # the file it was read from, with the line of one that was shipped
    tried: float = NAN  # of a target, how much the run spent as a whole, NaN where it is not known
    origin: str = HERE  # trained here or shipped; empty in a row that says why runs of its cell lack
    scale: str = ""  # at which it ran
    place: Place = ()  # dataset and setting, all of them
    method: str = ""  # its name in the study
    cell: str = ""  # the key of its cell
    planned: int = 0  # how many seeds of the cell are wanted


Run = Mapping[str, Row]
"""The rows of a run by metric."""


@dataclass
class Measured:
    """What the seeds of a cell give of a metric, or why there is no number."""

    scale: str = ""  # at which the cell ran
    place: Place = ()  # dataset and setting
    method: str = ""  # its name
    metric: str = ""  # its name
    status: str = NOT_RUN  # ``finished``, or what became of it
    reason: str = ""  # why it is not finished
    n_wanted: int = 0  # how many seeds are wanted
    n_bad: int = 0  # how many of them diverged or failed
    # the metric of each run that ended, by seed: NaN where it is undefined, infinite where a target was not reached
    values: Mapping[int, float] = field(default_factory=dict)
    # how much it still changed when the run ended, where that is known
    paces: Mapping[int, float] = field(default_factory=dict)
    # the word of :mod:`~fedbench.results.run_facts` for what shows that a run learned nothing
    signs: Mapping[int, str] = field(default_factory=dict)
    device_mean: float = NAN  # the mean over the clients' own models, over seeds
    device_variance: float = NAN  # their variance, over seeds
    floats_up: float = NAN  # what a run costs, the mean over seeds; so the next three
    floats_down: float = NAN
    samples: float = NAN
    seconds: float = NAN
    key: str = ""  # of the cell
    commit: str = ""  # of the code
    hardware: str = ""  # what its runs ran on
    shipped: bool = False  # whether some of its seeds came with the repository
    trained: bool = False  # whether some of them were trained here
    source: str = ""  # the files it was read from
    n_seeds: int = 0  # how many seeds ended as they should
    mean: float = NAN  # over the seeds there are, NaN unless finished or incomplete
    std: float = NAN  # likewise (ddof 1), NaN for one seed
    pace: float = NAN  # the mean over seeds
    # the seeds that learned nothing by the word of ``signs``, in which an AUC of 0.5 shows it, too
    idle: Mapping[str, list[int]] = field(default_factory=dict)
    low: float = NAN  # of a gain of federated training: the ends of its interval
    high: float = NAN
    paired: bool = False  # whether that takes both models' scores of the same test samples into account


@dataclass
class Printed:
    """A number of a paper, NaN where nothing is printed."""

    printed: float = NAN  # the number
    printed_text: str = ""  # its digits as printed (0.801 for 80.1 per cent)
    printed_std: float = NAN  # the printed ±
    printed_std_text: str = ""  # its digits
    note: str = ""  # what is said of it
    doubt: str = ""  # the note of a cell that the transcription flags, empty otherwise
    spread: str = ""  # what the printed ± is (``std`` over runs, ``device variance``, ``none``)
    print_seeds: float = NAN  # over how many runs it is
    comparable_std: float = NAN  # the printed ± where it is a standard deviation over runs
    print_digits: float = NAN  # how many decimals its table prints of its metric


@dataclass
class Compared(Printed, Measured):
    """A number of a table: ours, print, and what both say."""

    at: Mapping[str, Value] = field(default_factory=dict)  # the value of each axis
    dataset: str = ""  # one of them
    where: str = ""  # the axes that vary, in words
    slope: bool = False  # whether it is the slope along a setting
    gain: bool = False  # whether it is a gain of federated training
    of_scale: bool = False  # whether the scale runs it
    shown: bool = False  # whether there is a number of ours, or will be
    moving: str = ""  # by how much it was still changing, in words; empty if not known or no matter
    spread_counted: float = NAN  # the spread that verdicts take: at least what the steps of the metric give
    label: str = ""  # what its metric is called
    sign: int = 1  # of its metric, 1 where higher is better, else -1
    matters: float = NAN  # the smallest difference of its metric that matters
    digits: int = 3  # how many decimals are shown
    has_print: bool = False  # whether its table prints it
    difference: float = NAN  # ours minus print, NaN where nothing is compared
    half_width: float = NAN  # of the interval of the difference
    verdict: str = ""  # a word of :mod:`~fedbench.results.verdicts`
    basis: str = ""  # what the verdict rests on where it is one seed
    on_edge: bool = False  # whether it was made with a tuned value at the end of what was tried
    best: bool = False  # whether it is the best of its methods
    printed_best: bool = False  # whether its print is
    second: bool = False  # whether it is a second metric in its place


Kind = TypeVar("Kind")
TYPES: dict[type, dict[str, Any]] = {kind: get_type_hints(kind) for kind in (Row, Printed, Compared)}
"""The types of their columns."""


def frame_of(rows: Iterable[Kind], kind: type[Kind]) -> pd.DataFrame:
    """Return objects of a class as a frame with its columns; what is no int, float or bool lies there as it is."""
    types = {name: of if of in (int, float, bool) else object for name, of in TYPES[kind].items()}
    table = pd.DataFrame([[getattr(row, name) for name in types] for row in rows], None, [*types], object)
    # an array for each type: on one for each column pandas works many times as long
    names = {of: [name for name in types if types[name] is of] for of in dict.fromkeys(types.values())}
    return pd.concat([table[of_type].astype(of) for of, of_type in names.items()], axis=1)


def records(frame: pd.DataFrame, kind: type[Kind]) -> list[Kind]:
    """Return the rows of a frame as objects of their class; columns that the frame lacks have their defaults."""
    names = [name for name in TYPES[kind] if name in frame]
    rows = zip(*(frame[name].tolist() for name in names), strict=True)
    return [kind(**dict(zip(names, row, strict=True))) for row in rows]


def device_metrics(metric: str) -> tuple[str, str]:
    """Name the mean and the variance of a metric over the clients' own models."""
    return f"device_mean_{metric}", f"device_var_{metric}"
