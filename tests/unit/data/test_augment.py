from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate, pad

from fedbench.data.augment import crop_flip, pad_crop_flip


def one_by_one(inputs, rng, margin, resize):
    """The same augmentation, one sample after the other."""
    results = []
    for sample in inputs:
        height, width = sample.shape[1:]
        size = (height - 2, width - 2) if resize else (height, width)
        larger = pad(sample, (margin,) * 4)
        u = rng.random(3)
        top = int(u[0] * (larger.shape[1] - size[0] + 1))
        left = int(u[1] * (larger.shape[2] - size[1] + 1))
        cut = larger[:, top : top + size[0], left : left + size[1]]
        cut = cut.flip(-1) if u[2] >= 0.5 else cut
        results.append(
            interpolate(cut[None], (height, width), mode="bilinear", align_corners=False)[0]
            if resize
            else cut
        )
    return torch.stack(results)


@pytest.mark.parametrize("function, margin", [(crop_flip, 0), (pad_crop_flip, 4)])
@pytest.mark.parametrize("shape", [(50, 3, 12, 9), (3, 1, 28, 28), (1, 3, 5, 5)])
def test_equal_to_a_loop_over_the_samples(function, margin, shape):
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=shape))
    before = inputs.clone()
    result = function(inputs, np.random.default_rng(1))
    expected = one_by_one(inputs, np.random.default_rng(1), margin, resize=function is crop_flip)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    assert torch.equal(inputs, before)


@pytest.mark.parametrize("function", [crop_flip, pad_crop_flip])
def test_what_happens_to_a_sample_does_not_depend_on_those_after_it(function):
    inputs = torch.rand(20, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    alone = function(inputs[:7], np.random.default_rng(2))
    torch.testing.assert_close(function(inputs, np.random.default_rng(2))[:7], alone)


@pytest.mark.parametrize("function, places", [(crop_flip, 9), (pad_crop_flip, 81)])
def test_every_window_and_both_flips_occur_equally_often(function, places):
    position = torch.arange(12 * 12, dtype=torch.float64).view(1, 1, 12, 12) + 1
    results = function(position.expand(20_000, -1, -1, -1), np.random.default_rng(3))
    kinds, counts = np.unique(results.reshape(20_000, -1).numpy(), axis=0, return_counts=True)
    expected = 20_000 / (2 * places)
    assert len(kinds) == 2 * places
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()
