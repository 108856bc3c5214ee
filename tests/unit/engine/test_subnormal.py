"""Numbers below float32's normal range are zero while clients train, and only then."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import conv2d
from world import CPU, images, spec

from fedbench.engine.simulate import Simulation
from fedbench.engine.subnormal import flushed

pytestmark = pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor cannot flush subnormal numbers"
)


def gradient() -> float:
    """The largest entry of a convolution's gradient; its factors are normal numbers, it is not."""
    x = torch.ones(1, 2, 8, 8, requires_grad=True)
    (1e-19 * conv2d(x, torch.full((2, 2, 3, 3), 1e-21))).sum().backward()
    assert x.grad is not None
    return float(x.grad.double().max())


def test_gradients_are_flushed_inside_and_what_was_before_comes_back_also_after_an_error() -> None:
    assert 0 < gradient() < torch.finfo(torch.float32).tiny
    with flushed():
        assert gradient() == 0
        with pytest.raises(FloatingPointError), flushed():
            raise FloatingPointError
        assert gradient() == 0
    assert gradient() > 0


def test_clients_train_flushed_and_the_evaluation_is_not() -> None:
    simulation = Simulation(spec(rounds=2, evaluations=2), images(), CPU)
    step, evaluate, seen = simulation.method.step, simulation.evaluator.metrics, list[tuple[str, bool]]()

    def watched_step(*given: Any) -> Any:
        seen.append(("step", gradient() == 0))
        return step(*given)

    def watched_evaluation(*given: Any, **named: Any) -> Any:
        seen.append(("evaluation", gradient() == 0))
        return evaluate(*given, **named)

    object.__setattr__(simulation.method, "step", watched_step)
    object.__setattr__(simulation.evaluator, "metrics", watched_evaluation)
    simulation.run()
    assert set(seen) == {("step", True), ("evaluation", False)}
