"""Second derivatives of convolutions and batch-norms: those of PyTorch, with fewer operations."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedbench.models import resnet20
from fedbench.net.twice import Twice


def network(name: str) -> nn.Module:
    """A network in double precision, with weights drawn apart from those of its initialisation."""
    grouped = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, dilation=2)
    made: dict[str, nn.Module] = {
        "resnet20": resnet20.build((4, 8, 8), 2),
        "grouped": nn.Sequential(grouped, nn.Tanh(), nn.Conv2d(6, 2, 3, padding="same")),
        "tables": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1)),
        "no statistics": nn.Sequential(nn.Conv2d(4, 2, 1), nn.BatchNorm2d(2, track_running_stats=False), nn.Flatten()),
    }  # fmt: skip
    module = made[name].double()
    for part in module.parameters():
        part.data.add_(0.1 * torch.randn_like(part))
    return module


@pytest.mark.parametrize("name", ["resnet20", "grouped", "tables", "no statistics"])
def test_the_second_derivative_is_that_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    module = network(name)
    x = torch.randn(5, 4, *[8, 8] if name != "tables" else [], dtype=torch.float64)
    state = {key: value.clone() for key, value in module.state_dict().items()}

    def derivatives(mode: Any) -> tuple[Tensor, list[Tensor], list[Tensor], dict[str, Tensor]]:
        module.load_state_dict(state)
        weights = [part for part in module.parameters() if part.requires_grad]
        with mode:
            out = module(x)
        loss = F.softplus(out.sin()).mean()
        first = torch.autograd.grad(loss, weights, create_graph=True)
        direction = [torch.cos(torch.arange(part.numel()).double()).view_as(part) for part in weights]
        product = torch.autograd.grad(
            sum((a * b).sum() for a, b in zip(first, direction, strict=True)), weights, allow_unused=True
        )
        product = [torch.zeros_like(w) if p is None else p for w, p in zip(weights, product, strict=True)]
        return out, [*first], product, {key: value.clone() for key, value in module.state_dict().items()}

    plain, ours = derivatives(contextlib.nullcontext()), derivatives(Twice())
    assert torch.equal(plain[0], ours[0])
    for before, now in zip(plain[1], ours[1], strict=True):
        assert torch.equal(before, now)
    assert plain[3].keys() == ours[3].keys()
    for key, value in plain[3].items():
        assert torch.equal(value, ours[3][key]), key
    scale = max(float(part.abs().max()) for part in plain[2])
    assert scale > 1e-4
    for before, now in zip(plain[2], ours[2], strict=True):
        torch.testing.assert_close(now, before, rtol=1e-9, atol=1e-12 * scale)


def test_evaluation_is_left_as_it_is() -> None:
    """With running statistics a batch-norm is another function."""
    torch.manual_seed(0)
    module = network("resnet20").eval()
    x = torch.randn(3, 4, 8, 8, dtype=torch.float64)
    with Twice():
        inside = module(x)
    assert torch.equal(inside, module(x))
