"""What the README and the RO-Crate of an artifact say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fedbench.data.dataset import Dataset
from fedbench.plan.cells import Cell
from fedbench.plan.schema import Paper
from fedbench.report.numbers.origin import Behind


@dataclass(frozen=True)
class Facts:
    """An artifact.

    Attributes:
        paper: whose table it is.
        table: its name.
        scale: at which scale.
        commit: of the code.
        made: when the commit was made.
        cells: those of the table.
        behind: the runs that ended.
        data: what is trained on.
        said: what the program says that recomputes the verdicts.
        options: the ``--set`` options of the call.
        table_files: the forms of the table, as paths in the archive.
    """

    paper: Paper
    table: str
    scale: str
    commit: str
    made: datetime
    cells: Sequence[Cell]
    behind: Sequence[Behind]
    data: Sequence[Dataset]
    said: str
    options: Sequence[str]
    table_files: Sequence[str]

    @property
    def target(self) -> str:
        """The table's address."""
        return f"{self.paper.key}/{self.table}"

    @property
    def planned(self) -> int:
        """How many runs the table takes."""
        return len({run.key for cell in self.cells for run in cell.runs})

    @property
    def seconds(self) -> tuple[float, int]:
        """How long all runs trained whose time is known, and how many of the runs these are."""
        known = [run.seconds for run in self.behind if math.isfinite(run.seconds)]
        return sum(known), len(known)

    @property
    def hardware(self) -> Counter[str]:
        """What the runs ran on, and how many of them."""
        return Counter(run.hardware for run in self.behind if run.hardware)

    @property
    def commits(self) -> list[str]:
        """The commits of the code that made the runs."""
        return sorted({commit for run in self.behind for commit in run.commits})

    @property
    def again(self) -> Behind | None:
        """The run to train again: the shortest one on data without an account, None where no run finished."""
        behind_account = {data.name for data in self.data if data.account}
        chosen = [
            run for run in self.behind if run.finished and not behind_account & {*run.spec.data.datasets}
        ]
        return min(chosen, key=lambda run: (not math.isfinite(run.seconds), run.seconds), default=None)
