from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate, pad

from fedbench.data import augment
from fedbench.data.augment import affine, crop_flip, crop_flips, pad_crop_flip, scaled


def one_by_one(inputs, rng, function):
    """The same augmentation, one sample after the other; crop_flips turns half of them top to bottom first."""
    margin, results = 4 if function is pad_crop_flip else 0, []
    for sample in inputs:
        height, width = sample.shape[1:]
        size = (height, width) if margin else (height - 2, width - 2)
        down, right, mirror, *turn = rng.random(4 if function is crop_flips else 3)
        larger = pad(sample.flip(1) if turn and turn[0] >= 0.5 else sample, (margin,) * 4)
        top = int(down * (larger.shape[1] - size[0] + 1))
        left = int(right * (larger.shape[2] - size[1] + 1))
        cut = larger[:, top : top + size[0], left : left + size[1]]
        cut = cut.flip(-1) if mirror >= 0.5 else cut
        resized = interpolate(cut[None], (height, width), mode="bilinear", align_corners=False)[0]
        results.append(cut if margin else resized)
    return torch.stack(results)


@pytest.mark.parametrize("function", [crop_flip, crop_flips, pad_crop_flip])
@pytest.mark.parametrize("shape", [(50, 3, 12, 9), (3, 1, 28, 28), (1, 3, 5, 5)])
def test_equal_to_a_loop_over_the_samples(function, shape):
    """What happens to a sample does not depend on how many follow it."""
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=shape))
    before = inputs.clone()
    result = function(inputs, np.random.default_rng(1))
    expected = one_by_one(inputs, np.random.default_rng(1), function)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    assert torch.equal(function(inputs[:1], np.random.default_rng(1))[0], result[0])
    assert torch.equal(inputs, before)


@pytest.mark.parametrize("function", [crop_flip, crop_flips, pad_crop_flip, affine])
def test_whole_numbers_become_fractions_on_the_way_and_give_the_same_bits(function):
    """Windows are cut of bytes, a quarter of the memory."""
    stored = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (20, 3, 12, 9), dtype=np.uint8))
    result = function(stored, np.random.default_rng(1))
    assert result.dtype == torch.float32 and stored.dtype == torch.uint8
    assert torch.equal(result, function(stored.float() * (1 / 255), np.random.default_rng(1)))


@pytest.mark.parametrize("shape", [(50, 3, 12, 9), (8, 1, 120, 90)])
def test_a_gpu_cuts_the_same_windows_as_a_processor(shape):
    inputs = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
    places = (np.random.default_rng(1).random((len(inputs), 3)) * (3, 3, 2)).astype(np.int64).T
    for stored in (inputs, scaled(inputs)):
        height, width = shape[2] - 2, shape[3] - 2
        numbers = np.random.default_rng(1).random((len(stored), 3))
        expected = augment._crop_and_flip(stored, height, width, numbers)
        assert torch.equal(scaled(augment._gathered(stored, (height, width), *places)), expected)


@pytest.mark.parametrize("function, places", [(crop_flip, 9), (pad_crop_flip, 81)])
def test_every_window_and_both_flips_occur_equally_often(function, places):
    position = torch.arange(12 * 12, dtype=torch.float64).view(1, 1, 12, 12) + 1
    results = function(position.expand(20_000, -1, -1, -1), np.random.default_rng(3))
    kinds, counts = np.unique(results.reshape(20_000, -1).numpy(), axis=0, return_counts=True)
    expected = 20_000 / (2 * places)
    assert len(kinds) == 2 * places
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("shape", [(40, 1, 40, 40), (40, 3, 30, 47)])
def test_affine_is_that_of_torchvision(shape):
    """All but the pixels that lie half-way between two in the one rounding and not in the other."""
    from torchvision.transforms.v2.functional import affine as reference

    inputs = torch.from_numpy(np.random.default_rng(0).random(shape))
    result = affine(inputs, np.random.default_rng(1))
    differ = 0
    for sample, outcome, u in zip(inputs, result, np.random.default_rng(1).random((40, 4)), strict=True):
        turn, right, down, grow = 2 * u - 1
        shift = [round(0.05 * shape[3] * right), round(0.05 * shape[2] * down)]
        expected = reference(sample, 15 * turn, shift, 1 + 0.05 * grow, [0.0, 0.0], fill=128 / 255)
        differ += int((outcome - expected).abs().gt(1e-12).any(0).sum())
    assert differ < 1e-3 * len(inputs) * shape[2] * shape[3]
    grey = (result - 128 / 255).abs() < 1e-9
    assert 0.005 < grey.double().mean() < 0.2 and not grey[..., shape[2] // 2, shape[3] // 2].any()


def test_affine_turns_shifts_and_scales_to_its_bounds_and_no_further():
    """A grid of numbered pixels tells where each came from."""
    size, n = 101, 1000
    rows, columns = torch.meshgrid(*[torch.arange(size, dtype=torch.float64)] * 2, indexing="ij")
    places = torch.stack([columns, rows])
    moved = affine(places.expand(n, -1, -1, -1), np.random.default_rng(5))
    centre, right = moved[:, :, 50, 50], moved[:, :, 50, 80]
    assert (centre - 50).abs().max() <= 7 and (centre - 50).abs().max() > 5  # 5 pixels, turned
    arm = right - centre
    angle = torch.rad2deg(torch.atan2(arm[:, 1], arm[:, 0])).abs().max()
    assert 14 < angle < 17
    length = arm.norm(dim=1)
    assert 30 / 1.05 - 1 < length.min() < 29.5 and 30.5 < length.max() < 30 / 0.95 + 1
