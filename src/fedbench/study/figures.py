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

COSTS = ("floats_up", "samples", "seconds")
TAKES = {
    "pareto": "panels: dataset, one metric, and floats_up, samples or seconds for x",
    "forest": "panels: dataset, one metric and that of sites, at most one reference, neither x nor log",
    "roc": "one test metric and that of sites, such as [test_auc, test_auc@sites], neither x nor log; "
    "confusion of several methods also method among its panels",
}
"""What a kind of figure takes; others that are drawn from predictions as ``roc``."""


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
    settings: dict[str, Annotated[list[Value], Field(min_length=1)]]
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
        names = {metric.partition("@")[0] for metric in self.metrics}
        bare = self.x == "iteration" and not self.log and len(names) == 1
        of_dataset = self.panels == "dataset"
        told_apart = self.kind != "confusion" or len(self.methods) < 2 or "method" in self.panel_axes
        fits = {
            "pareto": of_dataset and len(self.metrics) == 1 and self.x in COSTS,
            "forest": of_dataset and bare and len(self.references) < 2,
            **dict.fromkeys(PREDICTED, bare and told_apart and self.metrics[0].startswith("test_")),
        }
        if not fits.get(self.kind, True):
            raise ValueError(f"kind {self.kind} takes {TAKES.get(self.kind, TAKES['roc'])}")
        return self

    @property
    def panel_axes(self) -> list[str]:
        """What its panels are, as a list."""
        return [self.panels] if isinstance(self.panels, str) else self.panels
