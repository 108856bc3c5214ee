"""What a paper claims: one sentence an entry of its YAML's ``claims:``, as a check that the numbers can pass or not.

- says: outperforms previous methods in all cases      # our paraphrase
  at: "4.1"                                             # where the paper says so
  in: [table1, table2]                                  # tables and figures whose cells it is about
  on: {alpha: [0, 0.1]}                                 # only there; all their settings if left out
  better: {method: CLIMB, than: [Baseline], metric: test_minority_accuracy}
  holds: all
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from fedbench import metric_table
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


def _check_sides(when: Mapping[str, Value], than: Any) -> None:
    """Refuse a setting that one side alone names: there would be nothing to compare."""
    if {*when} != {*(than if isinstance(than, dict) else ())}:
        raise ValueError(
            "when goes with a than that names a setting, and both name the same, e.g. when: {p: 16}, than: {p: 4}"
        )
    if when and when == than:
        raise ValueError("when and than are the same setting; name another")


class Comparison(Spec):
    """A method is compared with other methods, with itself at another setting, or with a number."""

    method: Names
    """The method that the claim is about; of several methods, the claim has to hold for each."""
    than: float | dict[str, Value] | Names
    """The other side of the comparison: other methods, a number, or the same method at another setting (`{p: 4}`)."""
    metric: str
    """The metric."""
    margin: float = Field(0.0, ge=0)
    """The smallest difference that counts."""
    when: dict[str, Value] = {}
    """The method's own setting, where `than` names another."""
    rival: str | None = None
    """Where `than` names a setting: another method, to be taken there. The two have to coincide at that setting, as
    CODASCA and NPA do at a period of 1."""
    change: dict[str, Annotated[list[Value], Field(min_length=2, max_length=2)]] = {}
    """A setting and two of its values: the comparison is of the change of the metric from the first value to the
    second."""
    over: Literal["end", "curve"] = "end"
    """Which value of the metric is compared: at the `end` of training, or the mean of the `curve`."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.change) > 1:
            raise ValueError("change: name one setting and two of its values")
        _check_sides(self.when, self.than)
        if isinstance(self.than, list) and len({*self.method, *self.than}) < 2:
            raise ValueError(f"than: {self.than[0]} is the method itself; name another")
        if self.rival and not isinstance(self.than, dict):
            raise ValueError("rival goes with a than that names a setting; name other methods in than")
        return self


class Within(Comparison):
    """A comparison with a margin: the method is no worse by more than the margin, or equal within the margin."""

    margin: float = Field(gt=0)
    """The largest difference that does not count."""


class Trend(Spec):
    """A method's metric, or the ``gap`` between two methods, rises or falls along a setting."""

    method: str | None = None
    """The method. Give either `method` or `gap`."""
    gap: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """Two methods, whose difference has to rise; the second may be `best_other`, the best of all other methods."""
    metric: str
    """The metric."""
    along: str
    """The setting along which the metric or the gap rises."""
    falls: bool = False
    """The metric or the gap falls instead."""
    margin: float = Field(0.0, ge=0)
    """The smallest change that counts."""
    over: Literal["end", "curve"] = "end"
    """Which value of the metric is taken: at the `end` of training, or the mean of the `curve`, which is larger if
    training is faster."""

    @model_validator(mode="after")
    def _method_or_gap(self) -> Self:
        if (self.method is None) == (self.gap is None):
            raise ValueError("give either method or gap: [one, other]")
        if self.gap and self.gap[0] == self.gap[1]:
            raise ValueError(f"gap: {self.gap[0]} is named twice; name another")
        return self


class Ratio(Spec):
    """The cost of one method divided by the cost of another, or the ratio of the ``largest`` settings that cost no
    accuracy.

    A target that is missed has an infinite cost. ``largest: I, within: 0.005, of: 1`` is the largest I whose metric is
    within 0.005 of the metric at I = 1.
    """

    method: str
    """The method that the claim is about."""
    than: dict[str, Value] | str
    """The divisor: the cost of this method, or of the same method at this setting."""
    when: dict[str, Value] = {}
    """The method's own setting, where `than` names another."""
    needs: Literal["round", "iteration", "samples", "floats_up", "floats_down", "seconds"] | None = None
    """The cost. Give either `needs` or `largest`."""
    to: Annotated[dict[str, float], Field(max_length=1)] = {}
    """A metric and its target: the cost is counted until the first evaluation that reaches the target. Default: the
    cost of the whole run."""
    largest: str | None = None
    """The setting whose largest value is compared, for example `I`."""
    within: float | None = Field(None, gt=0)
    """With `largest`: how far the metric may be from the metric at `of`."""
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
        _check_sides(self.when, self.than)
        if self.than == self.method:
            raise ValueError(f"than: {self.than} is the method itself; name another")
        for metric, value in self.to.items():
            metric_table.rounds_to(metric, value)  # refuses what nothing reaches
        return self


class Exists(Spec):
    """In at least one setting all other methods are below ``others_below``, and ``method`` is above ``above``."""

    method: str
    """The method that the claim is about."""
    above: float
    """The lower limit for the method's metric."""
    others_below: float
    """The upper limit for all other methods, in the same setting."""
    metric: str
    """The metric."""


class ClaimSpec(Spec):
    """A sentence of the paper that can be tested, in one of six forms: `better` to `exists`."""

    model_config = ConfigDict(populate_by_name=True)

    says: str
    """The sentence, in words of your own."""
    at: str = ""
    """The place in the paper."""
    targets: Annotated[Names, Field(alias="in")]
    """The tables and figures whose cells the claim is about."""
    own_data: bool = False
    """Judge the claim also on datasets that the paper does not have. Default: tables of such datasets are shown without
    a verdict."""
    untested: str = ""
    """Why the claim gets no verdict: its numbers could not come out otherwise."""
    only: dict[str, Values] = {}
    """The settings and datasets to which the claim is restricted, with their values."""
    holds: Literal["all", "average", "most", "some"] = "average"
    """In how many settings the claim has to hold: in `all`, in `most` (more than half), in `some`, or on `average`."""
    better: Comparison | None = None
    """The method is above each of `than` by more than `margin`."""
    no_worse: Within | None = None
    """The method is below each of `than` by less than `margin`."""
    equal: Within | None = None
    """The method is within `margin` of each of `than`."""
    trend: Trend | None = None
    """A metric, or a gap between two methods, rises along a setting."""
    ratio: Ratio | None = None
    """One cost divided by another is at least or at most a number."""
    exists: Exists | None = None
    """In at least one setting all other methods are below one limit, and the method is above another."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(getattr(self, name) is not None for name in FORMS) != 1:
            raise ValueError(f"give exactly one of {', '.join(FORMS)}")
        if self.holds != "average" and not self.comparison:
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
