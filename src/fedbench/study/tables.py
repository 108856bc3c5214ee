"""What a paper's file says of a table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fedbench import metric_table
from fedbench.spec import Spec
from fedbench.study.claims import Value

OF_DATA = {
    "kind": "facts",
    "rows": ["dataset"],
    "columns": ["metric", "split"],
    "splits": ["Training", "Validation", "Test"],
    "metrics": ["n_samples", "n_positive", "positive_ratio"],
}
"""What ``kind: data`` of older files is read as."""


class BoardSpec(Spec):
    """How a leaderboard ranks its methods."""

    random: str
    """The control method whose results replace those of a failed cell. It has no rank."""
    pooled: str | None = None
    """The control method that is trained without federation, with the same budget. It has no rank."""
    budget: Literal["floats_up", "samples"] | None = None
    """The budget at which methods are compared: equal `floats_up` or equal `samples`. Default: the end of training."""
    within: dict[str, Annotated[float, Field(gt=0)]] = {}
    """With `budget`: its amount, by dataset."""
    to: dict[str, float] = {}
    """With `budget`: a target of the first metric, by dataset; the leaderboard shows when a method reaches it."""

    @property
    def controls(self) -> list[str]:
        """The methods without a rank."""
        return [name for name in (self.random, self.pooled) if name]


class TableSpec(Spec):
    """The content of a table: its cells, its rows and columns, and the published numbers beside them."""

    title: str
    """Title of the table."""
    kind: Literal["results", "rates", "facts", "leaderboard"] = "results"
    """`results`: the metrics of trained cells. `rates`: exponents fitted over the budgets in `pool`. `facts`: the
    number of samples in each of `splits` beside the published number. `leaderboard`: methods ranked as `board` says."""
    datasets: list[str]
    """The datasets of the table."""
    additions: list[str] | None = None
    """The datasets with `printed: false` that the table also shows. Default: all that the scale runs."""
    methods: list[str] = []
    """The methods of the table. Default: all; none with `facts`, which trains nothing."""
    settings: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    """The values of settings; a setting that is not named has its default value."""
    references: list[Literal["local", "pooled"]] = []
    """With `results`: training without federation to compare with (`train.reference`). The table also shows the gain of
    federated training over the first reference. Federated training and references are columns, unless `rows` or
    `columns` name `training`."""
    metrics: list[str] = []
    """The metrics of the table."""
    rounds_to: dict[str, float | list[float]] = {}
    """Targets, by metric. The number of rounds until a curve first reaches the target becomes a metric of the table."""
    rows: list[str] = []
    """What varies along the rows: dataset, method, metric or settings."""
    columns: list[str] = []
    """What varies along the columns."""
    splits: Annotated[list[Literal["all", "Training", "Validation", "Test"]], Field(min_length=1)] = ["all"]
    """With `facts`: the parts of the data that are counted; `all` is the dataset before samples are dropped."""
    average: str | None = None
    """A dimension of the table, such as `dataset`, for which the mean over its values is added, taken seed by seed."""
    slope: str | None = None
    """A setting for which the slope of log(number) over log(setting) is added, taken seed by seed."""
    pool: list[str] = []
    """Settings over whose values each number is averaged, seed by seed; with `rates`: the budgets, smallest first."""
    epsilon: Literal["mean", "end"] = "mean"
    """With `rates`: the gradient norm is averaged over the run (`mean`) or over its second half (`end`)."""
    published: str | None = None
    """A CSV of published numbers in `published/PAPER`, or a path."""
    caption: str = ""
    """A sentence below the table."""
    board: BoardSpec | None = None
    """With `leaderboard`: how methods are ranked."""

    @model_validator(mode="after")
    def _with_targets(self) -> TableSpec:
        """Add the targets of ``rounds_to`` to the metrics."""
        for metric, values in self.rounds_to.items():
            names = [
                metric_table.rounds_to(metric, of)
                for of in (values if isinstance(values, list) else [values])
            ]
            self.metrics.extend(name for name in dict.fromkeys(names) if name not in self.metrics)
        return self

    @model_validator(mode="after")
    def _board_fits(self) -> TableSpec:
        if self.references and self.kind != "results":
            raise ValueError(f"references go with kind results, not {self.kind}")
        if (self.kind == "leaderboard") != (self.board is not None):
            raise ValueError("kind leaderboard and board go together")
        if self.board is not None and self.board.budget is not None:
            for name, given in (("within", self.board.within), ("to", self.board.to)):
                if lost := [dataset for dataset in self.datasets if dataset not in given]:
                    raise ValueError(f"board: {name} says nothing of {lost[0]}; fix it beforehand")
            for metric, target in itertools.product(self.metrics[:1], self.board.to.values()):
                metric_table.rounds_to(metric, target)  # refuses what nothing reaches
        return self

    def metrics_on(self, dataset: str) -> list[str]:
        """Return what is measured on a dataset: ``metrics``, or those within the board's budget, then its target."""
        board = self.board
        if board is None or board.budget is None:
            return self.metrics
        within = [metric_table.within(metric, board.budget, board.within[dataset]) for metric in self.metrics]
        return [*within, metric_table.rounds_to(self.metrics[0], board.to[dataset], board.budget)]

    @model_validator(mode="before")
    @classmethod
    def _of_data(cls, data: Any) -> Any:
        """Read ``kind: data`` as facts."""
        is_data = isinstance(data, Mapping) and data.get("kind") == "data"
        return {**data, **OF_DATA} if is_data else data
