"""Reads an ``.npz`` of one's own as arrays; what is doubtful in it is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedbench.data.custom.class_labels import as_text, check_alike, checked
from fedbench.data.files import read_npz
from fedbench.errors import UserError, unknown

_PARTS = ("train", "val", "test")
_FIELDS = [f"{kind}_{part}" for kind in "xy" for part in _PARTS]
_FIELDS += [f"{kind}_{part}" for kind in ("group", "site") for part in ("train", "test")]
ALIASES = {name: name for name in _FIELDS}
ALIASES |= {name.removesuffix("_train"): name for name in _FIELDS}
ALIASES |= {f"{part}_images": f"x_{part}" for part in _PARTS}
ALIASES |= {f"{part}_labels": f"y_{part}" for part in _PARTS}
"""Names of arrays in an ``.npz`` (ours, Keras' and MedMNIST's), and what they are called here."""
_AGAIN = "Write it again with numpy.savez, text as str and not as object."
CHANNELS = (1, 3, 4)
"""Numbers of channels that a picture has: grey, colour, colour with transparency."""


def npz_parts(file: Path, layout: Literal["NCHW", "NHWC"] | None, inputs: bool = True) -> dict[str, Any]:
    """Return the fields of :class:`~fedbench.data.dataset.Arrays` that an ``.npz`` has, without ``inputs`` no x.

    Raises:
        UserError: it is damaged, lacks an array, or has one that is no input, label or group.
    """
    known = None if inputs else [name for name, ours in ALIASES.items() if not ours.startswith("x")]
    by_name: dict[str, np.ndarray] = {}
    for name, array in read_npz(file, _AGAIN, known).items():
        if name not in ALIASES:
            raise unknown(f"array in {file}", name, ALIASES)
        if ALIASES[name] in by_name:
            raise UserError(f"{file}: {name!r} and another array are both {ALIASES[name]}; keep one.")
        by_name[ALIASES[name]] = array
    needed = {"x_train", "y_train"}
    for name in by_name:
        kind, _, part = name.partition("_")
        needed |= {f"{kind}_train", f"x_{part}", f"y_{part}"}
        if kind == "site" and "y_test" in by_name:
            needed.add("site_test")
    lacking = [name for name in needed - {*by_name} if inputs or not name.startswith("x")]
    if lacking:
        told = ", ".join(sorted(repr(name.removesuffix("_train")) for name in lacking))
        raise UserError(f"{file} has no array {told}, which belongs to the others.")
    return shaped(file, layout, by_name)


def shaped(
    file: Path, layout: Literal["NCHW", "NHWC"] | None, by_name: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Bring the arrays of an ``.npz``, by our names, into the shapes of :class:`~fedbench.data.dataset.Arrays`.

    A validation part joins the training part. ``layout`` says where the channels of images are, if the shape does not.
    """
    parts: dict[str, Any] = {}
    for name, array in by_name.items():
        where = f"{file}: array {name.removesuffix('_train')!r}"
        parts[name] = _inputs(array, layout, where) if name.startswith("x") else _one_each(array, where)
    for part in _PARTS:
        sizes = {name: len(array) for name, array in parts.items() if name.endswith(part)}
        if len({*sizes.values()}) > 1:
            told = ", ".join(f"{name.removesuffix('_train')} of {n}" for name, n in sizes.items())
            raise UserError(f"{file}: its arrays are of different numbers of samples: {told}")
    if "site_train" in parts:
        parts |= numbered_sites(file, {name: parts[name] for name in parts if name.startswith("site")})
    if "group_test" in parts:
        train, test = parts["group_train"], parts["group_test"]
        check_alike(file, "groups", train, test)
        number = np.unique(np.concatenate([train, test]), return_inverse=True)[1]
        parts |= {"group_train": number[: len(train)], "group_test": number[len(train) :]}
    return _with_validation(file, parts) if "y_val" in parts else parts


def _inputs(x: np.ndarray, layout: str | None, where: str) -> np.ndarray:
    """Bring images [n, H, W], [n, C, H, W] or [n, H, W, C] to [n, C, H, W], whole numbers of 0..255 to uint8.

    Nothing is guessed: fractions up to 255, which a network would take for very bright images, are refused.
    """
    if x.dtype.kind not in "biuf":
        raise UserError(f"{where} holds {x.dtype}, not real numbers.")
    if x.ndim < 2 or 0 in x.shape[1:]:
        raise UserError(f"{where} has shape {list(x.shape)}: give each sample features, [n, F], or an image")
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
        raise UserError(
            f"{where} holds images of fractions from {low:g} to {high:g}; they must lie in 0..1: divide by "
            f"{max(255, high):g}, or save whole numbers as uint8."
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


def _one_each(array: np.ndarray, where: str) -> np.ndarray:
    """Return an array with a value per sample, [n] or [n, 1], as [n]."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise UserError(f"{where} has shape {list(array.shape)}, expected [n]: a value per sample.")
    return array


def _with_validation(file: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """Append the validation part to the training part and mark it as held."""
    if "group_train" in parts or "site_train" in parts:
        raise UserError(f"{file} has groups or sites and a validation part: leave out one of them.")
    check_alike(file, "labels", parts["y_val"], parts["y_train"])
    if "x_val" in parts:
        x, like = parts["x_val"], parts["x_train"]
        if x.shape[1:] != like.shape[1:] or (x.dtype == np.uint8) != (like.dtype == np.uint8):
            shapes = f"x_val is {x.dtype} {list(x.shape)}, x is {like.dtype} {list(like.shape)}"
            raise UserError(f"{file}: {shapes}: make them alike")
    held = np.repeat([False, True], [len(parts["y_train"]), len(parts["y_val"])])
    for kind in ("x", "y"):
        if f"{kind}_val" in parts:
            parts[f"{kind}_train"] = np.concatenate([parts[f"{kind}_train"], parts.pop(f"{kind}_val")])
    return parts | {"held_train": held}


def npz_has_both(file: Path) -> bool:
    """Say whether an ``.npz`` has sites and groups: groups are the patients then. What cannot be read is said later."""
    if not file.is_file():  # a pipe would never end
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            ours = {ALIASES.get(name.removesuffix(".npy")) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False
    return {"site_train", "group_train"} <= ours


def numbered_sites(file: Path, owned: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the names of sites, sorted, as ``sites``, and each array [n] of names as indices into them."""
    texts = {name: as_text(file, "sites", array) for name, array in owned.items()}
    names = np.unique(np.concatenate([*texts.values()]))
    numbers = {name: np.searchsorted(names, text) for name, text in texts.items()}
    return {"sites": checked(file, names.tolist(), "site"), **numbers}
