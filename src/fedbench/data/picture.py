"""One picture file as pixels of one size."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps

from fedbench.errors import installed

DICOM = (".dcm", ".dicom")


@dataclass(frozen=True)
class Form:
    """What pictures become: resized bilinearly to (height, width), of one channel with ``grey``, else RGB.

    With ``draft`` a JPEG is decoded at a half, a quarter or an eighth of its size first, where that is not below
    (height, width): many times as fast for a large one, and its pixels differ by half a level of 255 on average. With
    ``upright`` a picture is turned as its EXIF tag says.
    """

    size: tuple[int, int]
    grey: bool = False
    draft: bool = False
    upright: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape [C, H, W] of a picture's pixels."""
        return (1 if self.grey else 3, *self.size)


def pixels_of(content: bytes, name: str, form: Form) -> np.ndarray:
    """Decode a picture file: ``[C, H, W]`` uint8.

    Pictures of more than 8 bits (and DICOM files) are stretched from their darkest to their brightest value.

    Raises:
        UserError: reading it needs a package that is not installed.
        OSError, SyntaxError, ValueError: it is not a picture.
    """
    height, width = form.size
    mode = "L" if form.grey else "RGB"
    try:
        picture = _decoded(content, name, (mode, (width, height)) if form.draft else None)
        picture = ImageOps.exif_transpose(picture) if form.upright else picture
        picture = picture if picture.mode == mode else picture.convert(mode)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from None
    pixels = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
    return pixels[None] if form.grey else pixels.transpose(2, 0, 1)


def _decoded(content: bytes, name: str, draft: tuple[str, tuple[int, int]] | None) -> Image.Image:
    """Decode a picture to 8 bits a channel; ``draft`` is the mode and size (width, height) that will do."""
    if name.lower().endswith(DICOM):
        return Image.fromarray(_stretched(_dicom(content, name)))
    with Image.open(io.BytesIO(content)) as picture:
        if picture.mode.startswith(("I", "F")):  # 16 or 32 bits
            return Image.fromarray(_stretched(np.asarray(picture)))
        if draft is not None:
            picture.draft(*draft)
        picture.load()
        return picture


def _dicom(content: bytes, name: str) -> np.ndarray:
    """Return a DICOM file's pixels, bright where the body is dense."""
    with installed("vision", f"reading {name} needs pydicom"):
        import pydicom
        from pydicom.errors import InvalidDicomError
    try:
        picture = pydicom.dcmread(io.BytesIO(content))
        pixels: np.ndarray = picture.pixel_array.astype(np.float64)
    except (InvalidDicomError, AttributeError, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error)) from None
    return -pixels if picture.PhotometricInterpretation == "MONOCHROME1" else pixels  # there white is 0


def _stretched(pixels: np.ndarray) -> np.ndarray:
    """Map the darkest value to 0 and the brightest to 255, uint8; one value alone becomes 0."""
    low, high = float(pixels.min()), float(pixels.max())
    scaled = (pixels.astype(np.float64) - low) * (255 / max(high - low, 1e-9))
    rounded: np.ndarray = scaled.round().astype(np.uint8)
    return rounded
