"""fedbench from Python: resolve cells, train them, and get their numbers as pandas DataFrames.

    import fedbench

    result = fedbench.run("localscgdam/Digits/p4_imratio0.1/CoDA", scale="demo", seeds=[0])
    result.metrics["test_auc"], result.curve

The run store is that of the working directory: runs that were trained there are not trained again. The configuration is
that of the directory, too, if it holds ``config/``, as for the command line (:mod:`fedbench.project`).
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.errors import UserError
from fedbench.store.runs import Store
from fedbench.study.cells import Cell, matching, paper_of, single
from fedbench.study.configuration import check_mirror, load_config
from fedbench.study.plan import ASKED, Plan

__all__ = ["Result", "cells", "run"]


@dataclass(frozen=True)
class Result:
    """A trained cell.

    Attributes:
        cell: the cell, with the resolved specification of each run in ``cell.runs``.
        runs: one row per seed: ``seed``, ``key``, ``status``, ``reason`` and every final metric; nan where a metric is
            undefined or the run diverged.
        curve: one row per seed and evaluation: ``seed``, ``iteration``, ``round``, ``samples``, floats sent, metrics.
    """

    cell: Cell
    runs: pd.DataFrame
    curve: pd.DataFrame
    _words: str = field(default="", repr=False)  # by which the command line keeps its predictions

    @property
    def metrics(self) -> dict[str, float]:
        """The mean of every final metric over the seeds that finished, nan where one has none; empty if none did."""
        finished = self.runs[self.runs["status"] == "finished"]
        numbers = finished.drop(columns=["seed", "key", "status", "reason"]).astype(float)
        means = numbers.mean(skipna=False) if len(numbers) else pd.Series(dtype=float)
        return {str(name): float(value) for name, value in means.items()}

    @property
    def predictions(self) -> pd.DataFrame:
        """The score of every test and validation sample, by seed (:func:`fedbench.store.predictions.load_predictions`).

        Raises:
            UserError: it was not trained with ``keep_model=True``; the message says what to do.
        """
        from fedbench.store import predictions

        return predictions.load_predictions(self.cell, Store(), self._words)

    def predict(self, file: str | Path, images: str | Path | None = None) -> pd.DataFrame:
        """Score the rows of another table with the models of a cell that was trained with ``keep_model=True``.

        Args:
            file: a table as the one trained on; label, group and site may be missing.
            images: the folder of the pictures that it lists. Default: that of the dataset.

        Raises:
            UserError: no model was kept, or the table is not as the one trained on; the message says what to do.
        """
        from fedbench.train import keeping, training

        folder = None if images is None else Path(images)
        return keeping.score(
            self.cell, Store(), Path(file), training.choose_device("auto"), folder, self._words
        )


def cells(
    pattern: str = "*", *, paper: str | None = None, scale: str | None = None, **config: Any
) -> list[Cell]:
    """List the cells of a paper whose name is ``pattern``, else matches it as a shell pattern, else in a part.

    Args:
        pattern: such as ``localscgdam/Digits/p4_imratio0.1/CoDA``, ``*/CoDA`` or ``p4``.
        paper: its key; default: the one that the pattern begins with, else the configuration's.
        scale: ``demo``, ``reduced`` or ``paper``; default: the configuration's.
        **config: any other key of ``config/config.yaml``, such as ``seeds=[0]`` or ``device="cpu"``, and
            ``set={"train.iterations": 200}``: values of a run, which change the keys of the cells.

    Raises:
        UserError: nothing matches, or a name or value is wrong; the message says which.
    """
    settings = load_config(overrides={**config, "paper": paper or paper_of(pattern), "scale": scale})
    return matching(Plan(settings).cells(), pattern)


def run(cell: str | Cell, *, paper: str | None = None, scale: str | None = None, **config: Any) -> Result:
    """Train one cell, taking from the run store the seeds that are finished, and return its numbers.

    Args:
        cell: a cell of :func:`cells`, or a pattern that fits exactly one.
        paper: as for :func:`cells`.
        scale: as for :func:`cells`.
        **config: as for :func:`cells`; with a resolved cell only keys that change no result, such as ``device``.

    Raises:
        UserError: the pattern fits no cell or several, or an argument is wrong.
    """
    from fedbench.train import preflight  # here, since they import torch
    from fedbench.train.training import train_cell

    if isinstance(cell, Cell):
        _refuse_what_is_fixed(cell, {"paper": paper, "scale": scale, **config})
        chosen = cell
    else:
        chosen = single(cells(cell, paper=paper, scale=scale, **config), cell)
    config = {**config, "paper": chosen.paper, "scale": chosen.scale, **chosen.asked}
    store, settings = Store(), load_config(overrides=config)
    check_mirror(settings)
    preflight.check([chosen])
    rows = [
        {"seed": record.spec["seed"], **{name: getattr(record, name) for name in ("key", "status", "reason")}}
        | record.metrics
        for record in train_cell(chosen, Plan(settings).keeping(chosen), store)
    ]
    texts = {row["seed"]: store.table(row["key"], "curve.csv") for row in rows}
    # a run that diverged before its first evaluation has none
    curves = [pd.read_csv(io.BytesIO(text)).assign(seed=seed) for seed, text in texts.items() if text]
    curve = pd.concat(curves, ignore_index=True) if curves else pd.DataFrame(columns=["seed"])
    words = Plan(settings).words(chosen, keep_model=True)
    return Result(chosen, pd.DataFrame(rows), curve[["seed", *curve.columns.drop("seed")]], words)


def _refuse_what_is_fixed(cell: Cell, given: dict[str, Any]) -> None:
    """Raise UserError where a resolved cell is given what it has already; its own seeds may be named."""
    if [run.seed for run in cell.runs] == given.get("seeds"):
        del given["seeds"]
    if fixed := [name for name in ("paper", "scale", *ASKED) if given.get(name) is not None]:
        raise UserError(f"a cell has its {' and '.join(fixed)} already; give that to fedbench.cells instead")
