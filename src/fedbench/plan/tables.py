"""What a paper's file says of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fedbench import measures
from fedbench.plan.claims import Value
from fedbench.specs import Spec


class BoardSpec(Spec):
    """What a leaderboard has besides its methods.

    ``random`` is the method in whose place a failed cell counts, ``pooled`` the one trained without federation, with
    the same budget: both are shown without a rank. With ``budget`` the board is not of the end of training, but of the
    last evaluation within an amount, fixed for each dataset in ``within``; it tells when the first metric reaches the
    target in ``to``.
    """

    random: str
    pooled: str | None = None
    budget: Literal["floats_up", "samples", "seconds"] | None = None
    within: dict[str, Annotated[float, Field(gt=0)]] = {}
    to: dict[str, float] = {}

    @property
    def controls(self) -> list[str]:
        """The methods without a rank."""
        return [name for name in (self.random, self.pooled) if name]


class TableSpec(Spec):
    """Which cells make the rows and columns of a table, and which published file it is held against.

    ``additions`` lists which of the datasets that the paper does not print stand in the table too, if the scale runs
    them; ``null``: all of them. ``average`` names an axis that gets the average over its values beside them, taken seed
    by seed. ``slope`` names a setting of numbers that gets, in the same way, the slope of log number over log setting.
    The cells of ``pool``, a list of settings, are repeats of one number. ``rounds_to`` adds the metric "rounds until a
    curve first reaches a target", for one target or several: ``{test_auc: 0.975}``.

    ``kind`` is ``results``; ``rates``: exponents fitted over the settings of ``pool``, which are budgets, smallest
    first, where ``epsilon`` is the mean gradient norm of a run or of its ``end``, the second half; ``data``: the
    datasets as partitioned; ``facts``: counts of ``splits`` of the data (``all``: before anything is dropped), held
    against print; or ``leaderboard``: methods ranked by the first metric on each dataset, as ``board`` says, without
    ``rows`` and ``columns``. One that names no methods has all of the paper's.
    """

    title: str
    kind: Literal["results", "rates", "data", "facts", "leaderboard"] = "results"
    datasets: list[str]
    additions: list[str] | None = None
    methods: list[str] = []
    settings: dict[str, list[Value]] = {}
    metrics: list[str] = []
    rounds_to: dict[str, float | list[float]] = {}
    rows: list[str] = []
    columns: list[str] = []
    splits: Annotated[list[Literal["all", "Training", "Validation", "Test"]], Field(min_length=1)] = ["all"]
    average: str | None = None
    slope: str | None = None
    pool: list[str] = []
    epsilon: Literal["mean", "end"] = "mean"
    published: str | None = None
    caption: str = ""
    board: BoardSpec | None = None

    @model_validator(mode="after")
    def _board_fits(self) -> TableSpec:
        if (self.kind == "leaderboard") != (self.board is not None):
            raise ValueError("kind leaderboard and board go together")
        if self.board is not None and self.board.budget is not None:
            for name, given in (("within", self.board.within), ("to", self.board.to)):
                if lost := [dataset for dataset in self.datasets if dataset not in given]:
                    raise ValueError(f"board: {name} says nothing of {lost[0]}; fix it beforehand")
        return self

    def metrics_on(self, dataset: str) -> list[str]:
        """Return what is measured on a dataset: ``metrics``, or those within the board's budget, then its target."""
        board = self.board
        if board is None or board.budget is None:
            return self.metrics
        found = [measures.within(metric, board.budget, board.within[dataset]) for metric in self.metrics]
        return [*found, measures.rounds_to(self.metrics[0], board.to[dataset], board.budget)]

    @model_validator(mode="before")
    @classmethod
    def _targets(cls, data: Any) -> Any:
        """Write the targets of ``rounds_to`` as metrics."""
        if not isinstance(data, Mapping) or not isinstance(data.get("rounds_to"), Mapping):
            return data
        found = [*data.get("metrics", [])]
        for metric, values in data["rounds_to"].items():
            found += [
                measures.rounds_to(metric, value)
                for value in (values if isinstance(values, list) else [values])
            ]
        return {**data, "metrics": list(dict.fromkeys(found))}
