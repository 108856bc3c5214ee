"""Conv4: the four blocks of few-shot learning (Vinyals et al., NIPS 2016; Finn et al., ICML 2017)."""

from __future__ import annotations

from torch import nn

from fedbench.errors import UserError


def build(shape: tuple[int, ...], outputs: int, width: int = 64) -> nn.Module:
    """Build the network: four times 3x3 convolution, batch-norm, ReLU and 2x2 pool, then a linear layer.

    Batch-norm takes the statistics of the batch, in evaluation too: an episode's own, as is usual in MAML.
    """
    if min(shape[1:], default=0) < 16:
        raise UserError(
            f"network 'conv4' halves images four times: {list(shape)} is too small, 16 x 16 are needed"
        )
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
