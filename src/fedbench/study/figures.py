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
    """The content of a figure: its cells, its axes and its panels."""

    title: str
    """Title of the figure."""
    kind: Literal["curves", "final", "duals", "pareto", "forest", "roc", "pr", "calibration", "confusion"] = (
        "curves"
    )
    """`curves`: a metric during training. `final`: final values against a setting. `duals`: the dual variables of every
    client. `pareto`: final values of all methods against their cost. `forest`: one row for each site, with the final
    value and its interval over the site's test samples. For two classes, from predictions of the test samples, which
    the runs then keep as with `keep_model`: `roc` and `pr` curves, `calibration` with the Brier score, and `confusion`
    matrices."""
    panels: str | Annotated[list[str], Field(min_length=1, max_length=2)]
    """What varies between panels: dataset, method, metric or a setting. Two of these vary between rows and columns."""
    datasets: list[str]
    """The datasets of the figure."""
    methods: list[str] = []
    """The methods of the figure. Default: all."""
    settings: dict[str, list[Value]]
    """The values of settings; a setting that is not named has its default value."""
    references: list[Literal["local", "pooled"]] = Field([], max_length=2)
    """Training without federation to compare with (`train.reference`). `forest` takes one of `local` and `pooled`, and
    shows the gain of federated training over it. `roc`, `pr` and `calibration` show these runs too; with `local`, each
    site's samples are scored by the site's own model."""
    metrics: list[str]
    """The metrics of the figure."""
    x: str = "iteration"
    """The horizontal axis: `iteration`, `round`, `cycle`, `samples`, `floats_up` or `seconds`; in a `final` figure, a
    setting whose values are numbers."""
    log: Literal["", "x", "y", "xy"] = ""
    """Which axes are logarithmic."""
    sensitivity: float = Field(0.9, gt=0, le=1)
    """With `confusion`: the sensitivity that fixes the threshold. A sample is predicted positive if its score is at
    least the highest threshold that reaches this sensitivity on the run's validation samples."""
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
