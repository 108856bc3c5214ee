"""What a paper's file says of a figure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedbench.plan.claims import Value
from fedbench.specs import Spec

COURSE = ("iteration", "round", "cycle", "samples", "floats_up", "seconds")
"""What a curve can be drawn against."""


class FigureSpec(Spec):
    """What a figure shows, against what, and what its panels are.

    ``kind``: ``curves`` over the course of training, ``final`` values against a setting, ``duals`` of every client,
    ``pareto``: final values of all methods (those of the paper, if none is named) against what they cost. ``x`` is one
    of :data:`COURSE`, or for ``final`` a setting with numbers for values. ``panels`` is an axis (dataset, method, a
    setting or metric), or two: one for the rows, one for the columns. ``log`` names the axes that are logarithmic.
    """

    title: str
    kind: Literal["curves", "final", "duals", "pareto"] = "curves"
    panels: str | Annotated[list[str], Field(min_length=1, max_length=2)]
    datasets: list[str]
    methods: list[str]
    settings: dict[str, list[Value]]
    metrics: list[str]
    x: str = "iteration"
    log: Literal["", "x", "y", "xy"] = ""
    caption: str = ""

    @model_validator(mode="after")
    def _pareto_fits(self) -> FigureSpec:
        if self.kind == "pareto" and (
            self.x not in ("floats_up", "samples", "seconds")
            or self.panels != "dataset"
            or len(self.metrics) != 1
        ):
            raise ValueError(
                "kind pareto takes panels: dataset, one metric, and floats_up, samples or seconds for x"
            )
        return self

    @property
    def panel_axes(self) -> list[str]:
        """What its panels are, as a list."""
        return [self.panels] if isinstance(self.panels, str) else self.panels
