"""Training augmentation as tensor operations on a batch, exact for every sample.

Each sample has its own row of random numbers, so what happens to it does not depend on how many follow it in
the batch: a batch padded to the size of its neighbours is augmented like the batch alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate, pad

GREY = 128 / 255


def scaled(inputs: Tensor) -> Tensor:
    """Turn images stored as whole numbers into fractions in [0, 1]; leave others as they are."""
    # one product of whole numbers and a fraction would be seven times as slow
    return inputs.to(torch.get_default_dtype()).mul_(1 / 255) if inputs.dtype == torch.uint8 else inputs


def crop_flip(inputs: Tensor, rng: np.random.Generator) -> Tensor:
    """Crop at random to (H - 2, W - 2), flip left-right half of the time, resize back bilinearly.

    The training augmentation of localscgdam (LibAUC's compositional AUC example), of inputs ``[B, C, H, W]`` as stored,
    H and W at least 3; three numbers a sample.
    """
    return _cropped(inputs, rng.random((len(inputs), 3)))


def crop_flips(inputs: Tensor, rng: np.random.Generator) -> Tensor:
    """Crop at random to (H - 2, W - 2), flip left-right and top-bottom half of the time each, resize back bilinearly.

    The training augmentation of ChestMNIST in FeDXL's program (a3b2f29, FeDXL/main.py 120-126), which resizes the crop
    of 26 x 26 to 32 x 32 at once; here the network does that. Shapes as in :func:`crop_flip`; four numbers a sample.
    """
    numbers = rng.random((len(inputs), 4))
    turned = torch.from_numpy(numbers[:, 3] >= 0.5).to(inputs.device)
    return _cropped(torch.where(turned[:, None, None, None], inputs.flip(-2), inputs), numbers[:, :3])


def pad_crop_flip(inputs: Tensor, rng: np.random.Generator) -> Tensor:
    """Pad 4 pixels of zeros on every side, crop at random to the old size, flip left-right half of the time.

    The training augmentation of climb for CIFAR. Shapes and draws as in :func:`crop_flip`.
    """
    height, width = inputs.shape[-2:]
    return _crop_and_flip(pad(inputs, (4, 4, 4, 4)), height, width, rng.random((len(inputs), 3)))


def affine(inputs: Tensor, rng: np.random.Generator) -> Tensor:
    """Turn by up to 15 degrees, shift by up to 5 % of each side, scale by up to 5 %; what comes into view is grey.

    The training augmentation of codasca's X-rays (LibAUC's CheXpert: RandomAffine, of the nearest pixel, fill 128), of
    inputs ``[B, C, H, W]`` as stored; four numbers a sample.
    """
    inputs = scaled(inputs)
    height, width = inputs.shape[-2:]
    turn, right, down, grow = (2 * rng.random((len(inputs), 4)) - 1).T
    angle, scale = np.radians(15 * turn), 1 + 0.05 * grow
    shift = np.round(np.stack([0.05 * width * right, 0.05 * height * down]))  # whole pixels
    # where a pixel of the result comes from, in pixels from the centre
    back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) / scale
    start = -np.einsum("ijb,jb->ib", back, shift)
    half = np.array([width, height]) / 2  # sampling counts in halves of a side
    back = back * (half[None, :] / half[:, None])[:, :, None]
    theta = np.concatenate([back, (start / half[:, None])[:, None]], 1).transpose(2, 0, 1)
    places = affine_grid(torch.from_numpy(theta).to(inputs), list(inputs.shape), align_corners=False)
    return grid_sample(inputs - GREY, places, mode="nearest", align_corners=False) + GREY


def _cropped(inputs: Tensor, numbers: np.ndarray) -> Tensor:
    height, width = inputs.shape[-2:]
    crops = _crop_and_flip(inputs, height - 2, width - 2, numbers)
    return interpolate(crops, size=(height, width), mode="bilinear", align_corners=False)


def _crop_and_flip(inputs: Tensor, height: int, width: int, numbers: np.ndarray) -> Tensor:
    """Cut one window out of each sample ``[B, C, H, W]``; whole numbers become fractions in [0, 1].

    ``numbers`` [B, 3] in [0, 1) say where, from the top and from the left, and whether it is turned.
    """
    rows, columns = inputs.shape[2] - height + 1, inputs.shape[3] - width + 1
    top, left, flip = (numbers * (rows, columns, 2)).astype(np.int64).T
    if inputs.device.type != "cpu":
        return scaled(_gathered(inputs, (height, width), top, left, flip))
    integers = inputs.dtype == torch.uint8
    crops = torch.empty((*inputs.shape[:2], height, width), dtype=None if integers else inputs.dtype)
    for crop, sample, y, x, turned in zip(crops.numpy(), inputs.numpy(), top, left, flip, strict=True):
        window = sample[:, y : y + height, x : x + width]
        crop[:] = window[..., ::-1] if turned else window
        if integers:  # while the sample is in the processor's cache
            crop *= 1 / 255
    return crops


def _gathered(
    inputs: Tensor, size: tuple[int, int], top: np.ndarray, left: np.ndarray, flip: np.ndarray
) -> Tensor:
    """Cut the windows in a few calls, as a GPU likes it; on a processor this takes four times as long as a loop."""
    windows = inputs.unfold(2, size[0], 1).unfold(3, size[1], 1)  # [B, C, rows, columns, *size], no copy
    samples = torch.arange(len(inputs), device=inputs.device)
    crops = windows[samples, :, *torch.from_numpy(np.stack([top, left])).to(inputs.device)]
    flipped = torch.from_numpy(np.flatnonzero(flip)).to(inputs.device)
    return crops.index_copy_(0, flipped, crops[flipped].flip(-1))
