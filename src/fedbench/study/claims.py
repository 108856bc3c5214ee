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
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from fedbench.spec import Spec

Value = bool | int | float | str
BEST_OTHER = "best_other"
Form = Literal["better", "no_worse", "equal", "trend", "ratio", "exists"]
FORMS: tuple[Form, ...] = get_args(Form)


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str | int | float) else given


Names = Annotated[
    list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str]), Field(min_length=1)
]
Values = Annotated[
    list[Value], BeforeValidator(_listed, json_schema_input_type=Value | list[Value]), Field(min_length=1)
]


class Comparison(Spec):
    """A method against other methods, itself at another setting, or a number."""

    method: Names
    """The method that the claim is about; of several, each has to hold."""
    than: float | dict[str, Value] | Names
    """What it is compared with: other methods, a number, or the same method at another setting (`{p: 4}`)."""
    metric: str
    """The metric."""
    margin: float = Field(0.0, ge=0)
    """The smallest difference that counts."""
    when: dict[str, Value] = {}
    """The method's own setting, where `than` names another."""
    rival: str | None = None
    """The method at the setting that `than` names, where it is another: one with which it coincides there."""
    change: dict[str, Annotated[list[Value], Field(min_length=2, max_length=2)]] = {}
    """A setting and two of its values: what is compared is the change of the metric from the first to the
    second."""
    over: Literal["end", "curve"] = "end"
    """Whether the end of training or the mean of the curve is compared."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.change) > 1:
            raise ValueError("change: name one setting and two of its values")
        if self.when and not isinstance(self.than, dict):
            raise ValueError("when goes with a than that names a setting, e.g. when: {p: 16}, than: {p: 4}")
        if self.rival and not isinstance(self.than, dict):
            raise ValueError("rival goes with a than that names a setting; name other methods in than")
        return self


class Within(Comparison):
    """A comparison that needs a margin: no worse by more, or equal up to it."""

    margin: float = Field(gt=0)
    """The largest difference that does not count."""


class Trend(Spec):
    """A method's metric, or the ``gap`` between two (the second may be ``best_other``), along a setting."""

    method: str | None = None
    """The method. Give either `method` or `gap`."""
    gap: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """Two methods, whose difference is looked at; the second may be `best_other`."""
    metric: str
    """The metric."""
    along: str
    """The setting along which it rises."""
    falls: bool = False
    """It falls."""
    margin: float = Field(0.0, ge=0)
    """The smallest change that counts."""
    over: Literal["end", "curve"] = "end"
    """Whether the end of training or the mean of the curve is looked at, which is larger where training is faster."""

    @model_validator(mode="after")
    def _method_or_gap(self) -> Self:
        if (self.method is None) == (self.gap is None):
            raise ValueError("give either method or gap: [one, other]")
        return self


class Ratio(Spec):
    """The cost of one method divided by that of another, or the ``largest`` settings that cost no accuracy.

    A target that is missed costs infinitely much. ``largest: I, within: 0.005, of: 1`` is the largest I whose metric is
    within 0.005 of that at I = 1.
    """

    method: str
    """The method that the claim is about."""
    than: dict[str, Value] | str
    """The method, or the same method's setting, whose cost it is divided by."""
    when: dict[str, Value] = {}
    """The method's own setting, where `than` names another."""
    needs: Literal["round", "iteration", "samples", "floats_up", "floats_down", "seconds"] | None = None
    """The cost. Give either `needs` or `largest`."""
    to: Annotated[dict[str, float], Field(max_length=1)] = {}
    """A metric and its target: the cost until the first evaluation that reaches it. Default: the cost of the
    run."""
    largest: str | None = None
    """The setting whose largest value is compared, for example `I`."""
    within: float | None = Field(None, gt=0)
    """With `largest`: how far the metric may be from that at `of`."""
    of: Value | None = None
    """With `largest`: the value of the setting that the others are compared with."""
    metric: str | None = None
    """With `largest`: the metric."""
    at_least: float | None = Field(None, gt=0)
    """The least ratio for which the claim holds. Give either `at_least` or `at_most`."""
    at_most: float | None = Field(None, gt=0)
    """The largest ratio for which the claim holds."""

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
    """The method that the claim is about."""
    above: float
    """Its metric has to be above this."""
    others_below: float
    """All other methods have to be below this, in the same setting."""
    metric: str
    """The metric."""


class ClaimSpec(Spec):
    """A sentence of the paper that can be tested, as one of six forms."""

    model_config = ConfigDict(populate_by_name=True)

    says: str
    """The sentence, in words of your own."""
    at: str = ""
    """Where the paper says so."""
    targets: Annotated[Names, Field(alias="in")]
    """The tables and figures whose cells it is about."""
    own_data: bool = False
    """Judge it on tables of data that the paper does not have. Default: such tables are shown without a
    verdict."""
    untested: str = ""
    """Why the claim has no verdict whatever its numbers are: they could not come out otherwise."""
    only: dict[str, Values] = {}
    """Settings or datasets that it is narrowed to, with their values."""
    holds: Literal["all", "average", "most", "some"] = "average"
    """Where it has to hold: in `all` settings, in `most`, in `some`, or on `average`."""
    better: Comparison | None = None
    """The method is above each of `than` by more than `margin`."""
    no_worse: Within | None = None
    """The method is below each of `than` by less than `margin`."""
    equal: Within | None = None
    """The method is within `margin` of each of `than`."""
    trend: Trend | None = None
    """A metric, or a gap between two methods, rises along a setting."""
    ratio: Ratio | None = None
    """One cost divided by another is large or small enough."""
    exists: Exists | None = None
    """In some setting all other methods are low and the method is high."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(getattr(self, name) is not None for name in FORMS) != 1:
            raise ValueError(f"give exactly one of {', '.join(FORMS)}")
        if self.holds != "average" and (self.trend or self.ratio):
            raise ValueError("holds goes with better, no_worse and equal")
        return self

    @property
    def form(self) -> Form:
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
        asked = self.comparison or self.trend or self.exists
        assert asked is not None
        return asked.metric

    def methods(self) -> list[str]:
        """List the methods it names."""
        named: list[str] = []
        if asked := self.comparison:
            named = [*asked.method, *(asked.than if isinstance(asked.than, list) else [])]
            named += [asked.rival] if asked.rival else []
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
        asked: Comparison | Ratio | None = self.comparison or self.ratio
        if asked:
            yield from ((name, [value]) for name, value in asked.when.items())
            if isinstance(asked.than, dict):
                yield from ((name, [value]) for name, value in asked.than.items())
        if isinstance(asked, Comparison):
            yield from asked.change.items()
        if self.trend:
            yield self.trend.along, []
        if self.ratio and self.ratio.largest:
            yield self.ratio.largest, [] if self.ratio.of is None else [self.ratio.of]
