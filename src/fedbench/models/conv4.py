"""Conv4: the four blocks of few-shot learning (Vinyals et al., NIPS 2016; Finn et al., ICML 2017)."""

from __future__ import annotations

from torch import nn

from fedbench.errors import UserError, unknown

FORMS = ("pooled", "strided")


def build(shape: tuple[int, ...], outputs: int, width: int = 64, form: str = "pooled") -> nn.Module:
    """Build the network: four blocks of ``width`` channels, then a linear layer.

    ``form``: ``pooled`` is 3x3 convolution, batch-norm, ReLU and 2x2 pool. ``strided`` is that of fcsg's program for
    Omniglot (353356a, Federated Model-Agnostic Meta-Learning/model.py 42-57, 83-116): no padding, no pool, ReLU before
    batch-norm, three 3x3 convolutions of stride 2 and one 2x2 of stride 1; normal weights after He, biases 0.

    Batch-norm takes the statistics of the batch, in evaluation too: an episode's own, as is usual in MAML.

    Raises:
        UserError: images are too small, or the form is unknown.
    """
    if form not in FORMS:
        raise unknown("form of network 'conv4'", form, FORMS)
    least = 16 if form == "pooled" else 23
    if min(shape[1:], default=0) < least:
        raise UserError(
            f"network 'conv4' halves images, form {form!r}: {list(shape)} is too small, {least} x {least} are needed"
        )
    return _strided(shape, outputs, width) if form == "strided" else _pooled(shape, outputs, width)


def _pooled(shape: tuple[int, ...], outputs: int, width: int) -> nn.Module:
    layers: list[nn.Module] = []
    fan_in, size = shape[0], list(shape[1:])
    for _ in range(4):
        layers += [
            nn.Conv2d(fan_in, width, 3, padding=1),
            nn.BatchNorm2d(width, track_running_stats=False),
            nn.MaxPool2d(2),
            nn.ReLU(),  # after the pool: the same bits, a quarter of the work
        ]
        fan_in, size = width, [side // 2 for side in size]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width * size[0] * size[1], outputs))


def _strided(shape: tuple[int, ...], outputs: int, width: int) -> nn.Module:
    layers: list[nn.Module] = []
    fan_in, size = shape[0], list(shape[1:])
    for kernel, stride in ((3, 2), (3, 2), (3, 2), (2, 1)):
        layers += [
            nn.Conv2d(fan_in, width, kernel, stride),
            nn.ReLU(),
            nn.BatchNorm2d(width, track_running_stats=False),
        ]
        fan_in, size = width, [(side - kernel) // stride + 1 for side in size]
    layers += [nn.Flatten(), nn.Linear(width * size[0] * size[1], outputs)]
    for layer in layers:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            assert layer.bias is not None
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)
