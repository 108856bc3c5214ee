"""What a paper's file says of a figure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedbench.spec import Spec
from fedbench.study.claims import Value

COURSE = ("iteration", "round", "cycle", "samples", "floats_up", "seconds")
"""What a curve can be drawn against."""

PREDICTED = ("roc", "pr", "calibration", "confusion")
"""Kinds of figures that are drawn from predictions."""


class FigureSpec(Spec):
    """What a figure shows, against what, and what its panels are."""

    title: str
    """Title of the figure."""
    kind: Literal["curves", "final", "duals", "pareto", "forest", "roc", "pr", "calibration", "confusion"] = (
        "curves"
    )
    """`curves` over the course of training; `final` values against a setting; `duals`: the dual variables of
    every client; `pareto`: final values of all methods against their cost; `forest`: final values of each site
    below each other, with the interval over its test samples. Of two classes, from predictions of the test samples,
    which its cells keep as with `keep_model`: `roc` and `pr` curves, `calibration` with its Brier score, and
    `confusion` matrices."""
    panels: str | Annotated[list[str], Field(min_length=1, max_length=2)]
    """What varies between panels: dataset, method, metric or a setting. With two of them: rows and columns.
    """
    datasets: list[str]
    """Its datasets."""
    methods: list[str] = []
    """Its methods. Default: all."""
    settings: dict[str, list[Value]]
    """The values of each setting that it shows. Default: the setting's default."""
    references: list[Literal["local", "pooled"]] = Field([], max_length=2)
    """Of `forest`: one of `local` and `pooled`. The figure shows the gain of federated training over it. Of `roc`,
    `pr` and `calibration`: what each cell is trained as besides; of `local` a site's samples are scored by its model.
    """
    metrics: list[str]
    """Its metrics."""
    x: str = "iteration"
    """The horizontal axis: `iteration`, `round`, `cycle`, `samples`, `floats_up` or `seconds`; of `final`
    figures a setting with numbers."""
    log: Literal["", "x", "y", "xy"] = ""
    """Which axes are logarithmic."""
    sensitivity: float = Field(0.9, gt=0, le=1)
    """Of `confusion`: predicted positive is what scores at least the highest threshold that reaches this sensitivity
    on the validation samples of the run."""
    caption: str = ""
    """A sentence below the figure."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> FigureSpec:
        if self.references and self.kind not in (known := ("forest", *PREDICTED[:3])):
            raise ValueError(f"references go with kind {', '.join(known)}, not {self.kind}")
        if self.kind == "forest" and len(self.references) > 1:
            raise ValueError("kind forest shows the gain over one reference: local or pooled")
        if self.kind == "pareto" and (
            self.x not in ("floats_up", "samples", "seconds")
            or self.panels != "dataset"
            or len(self.metrics) != 1
        ):
            raise ValueError(
                "kind pareto takes panels: dataset, one metric, and floats_up, samples or seconds for x"
            )
        if self.kind == "forest" and (
            self.panels != "dataset"
            or self.x != "iteration"
            or self.log
            or len({metric.partition("@")[0] for metric in self.metrics}) != 1
        ):
            raise ValueError(
                "kind forest takes panels: dataset, one metric and that of sites, neither x nor log"
            )
        if self.kind in PREDICTED and (
            self.x != "iteration"
            or self.log
            or len({metric.partition("@")[0] for metric in self.metrics}) != 1
            or not self.metrics[0].startswith("test_")
            or (self.kind == "confusion" and len(self.methods) > 1 and "method" not in self.panel_axes)
        ):
            raise ValueError(
                f"kind {self.kind} takes one test metric and that of sites, such as [test_auc, test_auc@sites], "
                "neither x nor log" + ", and method among its panels" * (self.kind == "confusion")
            )
        return self

    @property
    def panel_axes(self) -> list[str]:
        """What its panels are, as a list."""
        return [self.panels] if isinstance(self.panels, str) else self.panels
