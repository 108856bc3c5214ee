"""The pairwise losses of cycp's Table 10: derivatives, symmetry, special cases, extreme parameters."""

from __future__ import annotations

import math

import pytest
import torch

from fedbench.errors import UserError
from fedbench.objectives.pairwise import LOSSES, PairLoss


def loss(name: str, **changed: float) -> PairLoss:
    return PairLoss(name, **{"margin": 1.0, "temperature": 0.3, "slope": 10.0, "q": 3.0} | changed)


POINTS = torch.linspace(-2.5, 2.5, 403, dtype=torch.float64)  # none of them a kink


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("changed", [{}, {"margin": 0.4, "temperature": 0.05, "slope": 2.0, "q": 1.5}])
def test_derivative_is_that_of_the_value(name: str, changed: dict[str, float]) -> None:
    psi = loss(name, **changed)
    t = POINTS.clone().requires_grad_()
    (by_autograd,) = torch.autograd.grad(psi(t).value.sum(), t)
    torch.testing.assert_close(psi(POINTS).slope, by_autograd, rtol=1e-9, atol=1e-12)
    h = 1e-6
    differences = (psi(POINTS + h).value - psi(POINTS - h).value) / (2 * h)
    torch.testing.assert_close(psi(POINTS).slope, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name, t, value",
    [
        ("square", 0.25, 0.5625),
        ("square", 2.0, 1.0),
        ("squared_hinge", 0.25, 0.5625),
        ("squared_hinge", 2.0, 0.0),
        ("logistic", 0.3, math.log1p(math.exp(-1.0))),
        ("sigmoid", 0.3, 1 / (1 + math.e)),
        ("barrier_hinge", 0.25, 0.75),
        ("barrier_hinge", 2.0, 10.0),  # tau (t - m)
        ("barrier_hinge", -2.0, 11.0),  # m - tau (m + t)
        ("q_norm_hinge", 0.5, 0.125),
        ("q_norm_hinge", 2.0, 0.0),  # the printed form would be -1
    ],
)
def test_values_are_those_of_the_formulas(name: str, t: float, value: float) -> None:
    assert loss(name)(torch.tensor([t], dtype=torch.float64)).value.item() == pytest.approx(value, rel=1e-12)


def test_sigmoid_is_symmetric_and_the_unbounded_losses_are_not() -> None:
    for temperature in (1.0, 0.1, 0.01):
        psi = loss("sigmoid", temperature=temperature)
        total = psi(POINTS).value + psi(-POINTS).value
        torch.testing.assert_close(total, torch.ones_like(POINTS), rtol=1e-15, atol=1e-15)
    for name in ("square", "squared_hinge", "logistic", "q_norm_hinge"):
        total = loss(name)(POINTS).value + loss(name)(-POINTS).value
        assert float(total.max() - total.min()) > 1


@pytest.mark.parametrize("margin, slope", [(1.0, 10.0), (0.5, 3.0)])
def test_barrier_hinge_is_symmetric_between_its_barriers(margin: float, slope: float) -> None:
    psi = loss("barrier_hinge", margin=margin, slope=slope)
    inside = torch.linspace(-margin, margin, 101, dtype=torch.float64)
    torch.testing.assert_close(psi(inside).value + psi(-inside).value, torch.full_like(inside, 2 * margin))
    outside = margin + torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
    assert bool((psi(outside).value + psi(-outside).value > 2 * margin).all())
    corner = torch.tensor([margin, -margin], dtype=torch.float64)
    assert psi(corner).slope.tolist() == [-1.0, -1.0]


def test_q_norm_hinge_with_two_is_the_squared_hinge() -> None:
    two, squared = loss("q_norm_hinge", q=2.0)(POINTS), loss("squared_hinge")(POINTS)
    torch.testing.assert_close(two.value, squared.value)
    torch.testing.assert_close(two.slope, squared.slope)


@pytest.mark.parametrize("name", ["sigmoid", "logistic"])
def test_a_tiny_temperature_overflows_nowhere(name: str) -> None:
    t = torch.tensor([-1.0, -1e-3, 0.0, 1e-3, 1.0])  # single precision: exp(1000) is infinite
    psi = loss(name, temperature=1e-3)(t)
    assert bool(torch.isfinite(psi.value).all()) and bool(torch.isfinite(psi.slope).all())
    assert psi.slope[2].item() == pytest.approx(-250.0 if name == "sigmoid" else -500.0)
    assert psi.value[0] > psi.value[1] > psi.value[2] > psi.value[3] >= psi.value[4] >= 0


def test_sigmoid_keeps_its_slope_where_the_value_rounds_to_one() -> None:
    t = torch.tensor([-20.0])
    slope = loss("sigmoid", temperature=1.0)(t).slope.item()
    assert slope == pytest.approx(-math.exp(-20), rel=1e-5)  # psi (1 - psi) would be 0


@pytest.mark.parametrize(
    "name, changed, message",
    [
        ("sigmoyd", {}, "unknown pairwise loss 'sigmoyd'. Did you mean 'sigmoid'"),
        ("sigmoid", {"temperature": 0.0}, "temperature is 0.0, but has to be above 0"),
        ("q_norm_hinge", {"q": 1.0}, "q is 1.0, but has to be above 1"),
        ("barrier_hinge", {"slope": -1.0}, "slope is -1.0, but has to be above 0"),
        ("square", {"margin": math.nan}, "margin is nan, but has to be above 0"),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, changed: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        loss(name, **changed)
