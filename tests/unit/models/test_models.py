"""Shapes and sizes of the papers' networks."""

from __future__ import annotations

import copy

import pytest
import torch

from fedbench.net import build


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
    net = build(name, shape, outputs, 0, options)
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
