"""Shapes and sizes of the papers' networks."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from fedbench.errors import UserError
from fedbench.net import build_network
from fedbench.testing import simulation, toy


@pytest.mark.parametrize(
    ("name", "shape", "outputs", "options", "parameters"),
    [
        # climb's MNIST network: 784-128-128-10
        ("mlp", (1, 28, 28), 10, {"hidden": [128, 128]}, 784 * 128 + 128 + 128 * 128 + 128 + 1290),
        # FashionMNIST: conv20-5, pool, conv50-5, pool, fc500
        ("cnn", (1, 28, 28), 1, {}, 20 * 25 + 20 + 50 * 20 * 25 + 50 + 800 * 500 + 500 + 501),
        # climb's CIFAR10 network: conv64-5, pool, conv64-5, pool, fc384, fc192, 10
        (
            "cnn", (3, 32, 32), 10, {"channels": [64, 64], "kernel": 5, "hidden": [384, 192]},
            64 * 75 + 64 + 64 * 64 * 25 + 64 + 1600 * 384 + 384 + 384 * 192 + 192 + 1930,
        ),
        # He et al. print 0.27 M
        ("resnet20", (3, 32, 32), 10, {}, 269_722),
        ("densenet121", (3, 64, 64), 1000, {}, 7_978_856),
    ],
)  # fmt: skip
def test_networks_have_the_papers_sizes(
    name: str, shape: tuple[int, ...], outputs: int, options: dict[str, object], parameters: int
) -> None:
    net = build_network(name, shape, outputs, 0, options)
    assert net.d == parameters
    if name != "densenet121":
        buffers = net.initial_buffers()[None]
        scores = net.scores(net.initial()[None], torch.rand(1, 2, *shape), buffers, train=False)
        assert scores.shape == (1, 2, outputs)


def test_resnet20_shortcuts_subsample_and_pad() -> None:
    """With both branches of a block silenced, its output is its shortcut."""
    from fedbench.models.resnet20 import Block

    block = Block(2, 6, 2).eval()
    for norm in (block.norm1, block.norm2):
        norm.weight.data.zero_()
    inputs = torch.rand(1, 2, 4, 4)
    out = block(inputs)
    assert out.shape == (1, 6, 2, 2)
    assert torch.equal(out[:, 2:4], inputs[:, :, ::2, ::2])
    assert not out[:, :2].any() and not out[:, 4:].any()


def test_conv4_pools_first_and_has_the_bits_of_the_usual_order() -> None:
    """Convolution, batch-norm, ReLU, pool: values and gradients, with batches that ReLU cuts."""
    from torch import nn

    from fedbench.models import conv4

    torch.manual_seed(0)
    net = conv4.build((1, 16, 16), 3, width=4)
    usual = copy.deepcopy(net)
    for block in range(4):
        first = 4 * block
        assert isinstance(usual[first + 2], nn.MaxPool2d) and isinstance(usual[first + 3], nn.ReLU)
        usual[first + 2], usual[first + 3] = usual[first + 3], usual[first + 2]
    inputs = torch.randn(6, 1, 16, 16)
    results = []
    for part in (net, usual):
        scores = part(inputs)
        results.append([scores, *torch.autograd.grad(scores.square().sum(), list(part.parameters()))])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    assert (net[:3](inputs) < 0).any()  # without ReLU these would be other numbers


def test_conv4_whose_scores_depend_on_the_batch_is_not_measured_by_samples() -> None:
    wide = toy((24, 32), side=16)
    with pytest.raises(UserError, match="conv4"):
        simulation("fedavg", {"lr": 0.1}, wide, network={"name": "conv4", "options": {"width": 4}}).run()


def test_the_strided_conv4_is_the_authors_network() -> None:
    """Layer by layer with functions alone: ReLU before batch-norm, no padding, no pool; 28 x 28 end in one pixel."""
    net = build_network("conv4", (1, 28, 28), 5, 0, {"form": "strided"})
    sizes = [9, 64 * 9, 64 * 9, 64 * 4]
    assert net.d == sum(64 * size + 3 * 64 for size in sizes) + 64 * 5 + 5
    x, inputs = net.initial().double(), torch.rand(6, 1, 28, 28, dtype=torch.float64)
    parts, values, at = [], inputs, 0
    for _, shape in net.parameters:
        parts.append(x[at : at + shape.numel()].view(shape))
        at += shape.numel()
    blocks = zip(*(parts[first:16:4] for first in range(4)), (2, 2, 2, 1), strict=True)
    for kernel, bias, scale, shift, stride in blocks:
        values = F.conv2d(values, kernel, bias, stride).relu()
        mean, variance = (
            values.mean((0, 2, 3), keepdim=True),
            values.var((0, 2, 3), unbiased=False, keepdim=True),
        )
        values = (values - mean) / (variance + 1e-5).sqrt() * scale.view(-1, 1, 1) + shift.view(-1, 1, 1)
    assert values.shape == (6, 64, 1, 1)
    expected = values.flatten(1) @ parts[16].T + parts[17]
    scores = net.scores(net.initial()[None], inputs.float()[None])[0]
    assert torch.allclose(scores.double(), expected, atol=1e-4)
    for kernel in (*parts[0:16:4], parts[16]):  # normal after He: variance 2 / fan-in
        fan_in = kernel[0].numel()
        assert float(kernel.var()) * fan_in / 2 == pytest.approx(
            1, abs=0.35 if kernel.numel() < 1000 else 0.06
        )
    assert not any(bias.any() for bias in (*parts[1:16:4], parts[17]))


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("mlp", (10,), {"hidden": []}),
        ("mlp", (400,), {"hidden": [300]}),
        ("cnn", (1, 28, 28), {"channels": [20, 50]}),
    ],
)
def test_xavier_weights_have_glorot_s_variance_and_biases_of_one_by_their_number(
    name: str, shape: tuple[int, ...], options: dict[str, object]
) -> None:
    net = build_network(name, shape, 1, 0, options, "xavier")
    x, at = net.initial(), 0
    for _, size in net.parameters:
        part = x[at : at + size.numel()].view(size)
        at += size.numel()
        if part.dim() == 1:
            assert torch.equal(part, torch.full_like(part, 1 / len(part)))
        elif part.numel() >= 300:
            fans = (part.shape[0] + part.shape[1]) * part[0, 0].numel()
            assert float(part.square().mean()) * fans / 2 == pytest.approx(1, abs=0.3)
    other = build_network(name, shape, 1, 0, options)
    assert other.d == net.d and not torch.equal(other.initial(), x)
