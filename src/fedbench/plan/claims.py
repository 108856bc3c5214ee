"""What a paper claims: one sentence an entry of its YAML's ``claims:``, as a check that the numbers can pass or not.

- says: outperforms previous methods in all cases      # our paraphrase
  at: "4.1"                                             # where the paper says so
  in: [table1, table2]                                  # tables and figures whose cells it is about
  on: {alpha: [0, 0.1]}                                 # only there; all their settings if left out
  better: {method: CLIMB, than: [Baseline], metric: test_minority_accuracy}
  holds: all
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from fedbench.specs import Spec, digest

Value = bool | int | float | str
BEST_OTHER = "best_other"


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str | int | float) else given


Names = Annotated[
    list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str]), Field(min_length=1)
]
Values = Annotated[
    list[Value], BeforeValidator(_listed, json_schema_input_type=Value | list[Value]), Field(min_length=1)
]


class Comparison(Spec):
    """``method`` (each of several) against ``than``: other methods, the same at another setting, or a number.

    ``when`` is the method's own setting where ``than`` names another. ``change`` compares how values change from the
    first to the second value of a setting. ``over: curve`` takes the mean of a curve instead of its end.
    """

    method: Names
    than: float | dict[str, Value] | Names
    metric: str
    margin: float = Field(0.0, ge=0)
    when: dict[str, Value] = {}
    change: dict[str, Annotated[list[Value], Field(min_length=2, max_length=2)]] = {}
    over: Literal["end", "curve"] = "end"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.change) > 1:
            raise ValueError("change: name one setting and two of its values")
        if self.when and not isinstance(self.than, dict):
            raise ValueError("when goes with a than that names a setting, e.g. when: {p: 16}, than: {p: 4}")
        return self


class Within(Comparison):
    """A comparison that needs a margin: no worse by more, or equal up to it."""

    margin: float = Field(gt=0)


class Trend(Spec):
    """A method's metric, or the ``gap`` between two (the second may be ``best_other``), along a setting."""

    method: str | None = None
    gap: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    metric: str
    along: str
    falls: bool = False
    margin: float = Field(0.0, ge=0)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.method is None) == (self.gap is None):
            raise ValueError("give either method or gap: [one, other]")
        return self


class Ratio(Spec):
    """What ``method`` needs, divided by what ``than`` needs; or the ``largest`` settings that they can take.

    ``needs`` is a column of the curve (``round``, ``samples``, ``floats_up``); with ``to`` what is needed until the
    first evaluation that reaches a target fixed here (a miss is infinite), without it what a whole run needs.
    ``largest: I, within: 0.005, of: 1`` is the largest I whose metric is within 0.005 of that at I = 1.
    """

    method: str
    than: dict[str, Value] | str
    when: dict[str, Value] = {}
    needs: Literal["round", "iteration", "samples", "floats_up", "floats_down", "seconds"] | None = None
    to: Annotated[dict[str, float], Field(max_length=1)] = {}
    largest: str | None = None
    within: float | None = Field(None, gt=0)
    of: Value | None = None
    metric: str | None = None
    at_least: float | None = Field(None, gt=0)
    at_most: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.needs is None) == (self.largest is None):
            raise ValueError("give either needs or largest")
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give either at_least or at_most")
        if self.largest is not None and None in (self.within, self.of, self.metric):
            raise ValueError("largest needs within, of and metric")
        return self


class Exists(Spec):
    """Somewhere all other methods are below ``others_below``, and ``method`` is above ``above``."""

    method: str
    above: float
    others_below: float
    metric: str


class ClaimSpec(Spec):
    """A sentence of the paper that can be tested, as one of six forms.

    ``untested`` says why a claim has no verdict whatever its numbers are: they could not come out otherwise. With
    ``own_data`` it is judged on tables of data that the paper does not have, and the verdict names them; else such
    data only show what they show.
    """

    model_config = ConfigDict(populate_by_name=True)

    says: str
    at: str = ""
    targets: Annotated[Names, Field(alias="in")]
    own_data: bool = False
    untested: str = ""
    only: dict[str, Values] = {}
    holds: Literal["all", "average", "most", "some"] = "average"
    better: Comparison | None = None
    no_worse: Within | None = None
    equal: Within | None = None
    trend: Trend | None = None
    ratio: Ratio | None = None
    exists: Exists | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(getattr(self, name) is not None for name in FORMS) != 1:
            raise ValueError(f"give exactly one of {', '.join(FORMS)}")
        if self.holds != "average" and (self.trend or self.ratio):
            raise ValueError("holds goes with better, no_worse and equal")
        return self

    @property
    def form(self) -> Literal["better", "no_worse", "equal", "trend", "ratio", "exists"]:
        """Which of the six it is."""
        return next(name for name in FORMS if getattr(self, name) is not None)

    @property
    def comparison(self) -> Comparison | None:
        """What is compared, where the form is a comparison."""
        return self.better or self.no_worse or self.equal

    @property
    def metric(self) -> str:
        """The metric that is looked at; of a ratio of costs the cost."""
        if self.ratio:
            return self.ratio.metric or next(iter(self.ratio.to), self.ratio.needs or "")
        one = self.comparison or self.trend or self.exists
        assert one is not None
        return one.metric

    @property
    def digest(self) -> str:
        """A digest of the block: a verdict carries it, so that what was asked is known to be what was written down."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_defaults=True))

    def methods(self) -> list[str]:
        """List the methods it names."""
        named: list[str] = []
        if one := self.comparison:
            named = [*one.method, *(one.than if isinstance(one.than, list) else [])]
        if self.exists:
            named = [self.exists.method]
        if self.trend:
            named = [
                name for name in (self.trend.method, *(self.trend.gap or [])) if name and name != BEST_OTHER
            ]
        if self.ratio:
            named = [self.ratio.method, *([self.ratio.than] if isinstance(self.ratio.than, str) else [])]
        return named

    def settings(self) -> Iterator[tuple[str, Sequence[Value]]]:
        """List the settings it names with their values, none for a setting as a whole."""
        one: Comparison | Ratio | None = self.comparison or self.ratio
        if one:
            yield from ((name, [value]) for name, value in one.when.items())
            if isinstance(one.than, dict):
                yield from ((name, [value]) for name, value in one.than.items())
        if isinstance(one, Comparison):
            yield from one.change.items()
        if self.trend:
            yield self.trend.along, []
        if self.ratio and self.ratio.largest:
            yield self.ratio.largest, [] if self.ratio.of is None else [self.ratio.of]


FORMS: tuple[Literal["better", "no_worse", "equal", "trend", "ratio", "exists"], ...] = (
    "better",
    "no_worse",
    "equal",
    "trend",
    "ratio",
    "exists",
)
