"""Images of a user's file in the layout and type that everything here has; nothing is guessed."""

from __future__ import annotations

import numpy as np

from fedbench.errors import UserError

CHANNELS = (1, 3, 4)
"""Numbers of channels that a picture has: grey, colour, colour with transparency."""


def arrange(x: np.ndarray, layout: str | None, where: str) -> np.ndarray:
    """Return inputs as they are stored: images [n, C, H, W], uint8 where they hold whole numbers of 0..255.

    Args:
        x: [n, H, W], [n, C, H, W] or [n, H, W, C]; features [n, F] stay as they are.
        layout: ``NCHW`` or ``NHWC``; None: where the channels are is plain from the shape.
        where: names the array in a message.

    Raises:
        UserError: the values are not real numbers, the shape does not say where the channels are, or fractions up to
            255 are given, which a network would take for very bright images.
    """
    if x.dtype.kind not in "biuf":
        raise UserError(f"{where} holds {x.dtype}, not real numbers.")
    if x.ndim < 3:
        return x
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        x = x.transpose(0, 3, 1, 2) if _channels_last(x, layout, where) else x
    if x.dtype == np.uint8 or not x.size:
        return x
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    if x.dtype.kind in "iu" and low >= 0 and high <= 255:
        return x.astype(np.uint8)
    if low >= 0 and high > 2:
        most = 255 if high <= 255 else high
        raise UserError(
            f"{where} holds images of fractions from {low:g} to {high:g}; they must lie in 0..1: divide by {most:g}, or"
            " save whole numbers as uint8."
        )
    return x


def _channels_last(x: np.ndarray, layout: str | None, where: str) -> bool:
    if layout is not None:
        return layout == "NHWC"
    first, last = x.shape[1] in CHANNELS, x.shape[3] in CHANNELS
    if first == last:
        raise UserError(
            f"{where} has shape {list(x.shape)}, which does not say where the channels are: write `layout: NCHW` or"
            " `layout: NHWC` into the dataset's YAML."
        )
    return last
