"""Reads the files of one's own datasets, ``.npz`` and ``.csv``, as arrays; what is doubtful in them is refused."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedbench.data.files import read_npz
from fedbench.data.layout import arrange
from fedbench.errors import UserError, shortened, unknown

MOST_CLASSES = 10_000
"""Classes that a file of one's own may have: each is counted, for each client."""
LONGEST = 100
"""Characters of a class's name."""
_PARTS = ("train", "val", "test")
FORMATS = {
    "plain": {"x": "x_train", "y": "y_train", "group": "group_train", "site": "site_train"}
    | {"site_test": "site_test"}
    | {f"{kind}_{part}": f"{kind}_{part}" for kind in "xy" for part in ("val", "test")},
    "keras": {f"{kind}_{part}": f"{kind}_{part}" for kind in "xy" for part in _PARTS},
    "medmnist": {
        f"{part}_{name}s": f"{kind}_{part}"
        for kind, name in (("x", "image"), ("y", "label"))
        for part in _PARTS
    },
}
"""What the arrays of an ``.npz`` are called, by format, and what they are called here."""
ALIASES = {name: ours for names in FORMATS.values() for name, ours in names.items()}
"""Names of arrays in an ``.npz`` of any format."""


def npz_parts(file: Path, layout: Literal["NCHW", "NHWC"] | None, form: str | None = None) -> dict[str, Any]:
    """Return the fields of :class:`~fedbench.data.dataset.Arrays` that an ``.npz`` has; it may lack a test part.

    Args:
        file: the archive.
        layout: where the channels of images are, None where the shape says it.
        form: a name of :data:`FORMATS`, whose arrays it has to hold; None: any.

    Raises:
        UserError: it is damaged, lacks an array, or has one that is no input, label or group.
    """
    names = FORMATS[form] if form else ALIASES
    arrays = read_npz(file, "Write it again with numpy.savez, text as str and not as object.", delete="")
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if name not in names:
            what = f"array of format {form} in {file}" if form else f"array in {file}"
            raise unknown(what, name, names)
        if names[name] in found:
            raise UserError(f"{file}: {name!r} and another array are both {names[name]}; keep one.")
        found[names[name]] = array
    if form == "medmnist" and (missing := [name for name, ours in names.items() if ours not in found]):
        raise UserError(f"{file} is no file of format medmnist: it has no array {', '.join(missing)}.")
    pairs = [("x_train", "y_train")]
    pairs += [(f"x_{part}", f"y_{part}") for part in ("test", "val") if {f"x_{part}", f"y_{part}"} & {*found}]
    for needed in (name for pair in pairs for name in pair):
        if needed not in found:
            raise UserError(f"{file} has no array {needed.removesuffix('_train')!r}.")
    wanted = {"site_train", *(["site_test"] if "x_test" in found else [])}
    given = {"site_train", "site_test"} & {*found}
    if given and given != wanted:
        raise UserError(f"{file}: give the arrays site and x_test with site_test, or site alone.")
    return _parts(file, layout, found)


def _parts(file: Path, layout: str | None, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Bring the arrays of a file into the shapes of :class:`Arrays`; a validation part joins the training part."""
    parts: dict[str, Any] = {}
    for name, array in found.items():
        where = f"{file}: array {name.removesuffix('_train')!r}"
        if name.startswith("x"):
            parts[name] = arrange(array, layout, where)
            if array.ndim < 2 or 0 in array.shape[1:]:
                raise UserError(
                    f"{where} has shape {list(array.shape)}: give each sample features, [n, F], or an image"
                )
        elif array.ndim == 2 and array.shape[1] == 1:
            parts[name] = array[:, 0]
        elif array.ndim != 1:
            raise UserError(
                f"{where} has shape {list(array.shape)}, expected [n]: write it again with one value per sample."
            )
        else:
            parts[name] = array
    labels = [name for name in parts if name.startswith("y")]
    for name in labels:
        if parts[name].dtype.kind in "iu" and parts[name].max(initial=0) >= MOST_CLASSES:
            raise UserError(
                f"{file}: labels in {name.removesuffix('_train')!r} reach {parts[name].max()}: number the "
                f"classes from 0 without gaps; {MOST_CLASSES} is the most"
            )
    kinds = {parts[name].dtype.kind in "US" for name in labels}
    if len(kinds) > 1:
        raise UserError(f"{file}: labels are text in one part and numbers in another; make them alike")
    if True in kinds:
        try:
            texts = {name: parts[name].astype(str) for name in labels}
            classes = np.unique(np.concatenate([*texts.values()]))
            parts["classes"] = _class_names(file, classes)
        except (UnicodeError, SystemError):  # bytes, or numbers that are no characters
            raise UserError(f"{file}: its labels are no text; save them as str") from None
        parts |= {name: np.searchsorted(classes, text) for name, text in texts.items()}
    if "site_train" in parts:
        owned: dict[str, np.ndarray] = {
            name: parts[name] for name in ("site_train", "site_test") if name in parts
        }
        parts |= numbered_sites(file, owned)
    if "x_val" in parts:
        x, y = parts.pop("x_val"), parts.pop("y_val")
        if "group_train" in parts or "site_train" in parts:
            raise UserError(f"{file} has groups or sites and a validation part: leave out one of them.")
        like = parts["x_train"]
        if x.shape[1:] != like.shape[1:] or (x.dtype == np.uint8) != (like.dtype == np.uint8):
            raise UserError(
                f"{file}: x_val is {x.dtype} {list(x.shape)}, x is {like.dtype} {list(like.shape)}: make "
                "them alike"
            )
        parts["held_train"] = np.repeat([False, True], [len(parts["x_train"]), len(x)])
        parts["x_train"] = np.concatenate([parts["x_train"], x])
        parts["y_train"] = np.concatenate([parts["y_train"], y])
    return parts


def numbered_sites(file: Path, owned: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the names of sites, sorted, as ``sites``, and each array [n] of names as indices into them."""
    try:
        texts = {name: array.astype(str) for name, array in owned.items()}
    except (UnicodeError, SystemError):
        raise UserError(f"{file}: its sites are no text; save them as str") from None
    names = np.unique(np.concatenate([*texts.values()]))
    numbers = {name: np.searchsorted(names, text) for name, text in texts.items()}
    return {"sites": _class_names(file, names, "site"), **numbers}


def _class_names(file: Path, classes: np.ndarray, what: str = "class") -> tuple[str, ...]:
    """Return the names of classes or sites, which stand in tables."""
    found = tuple(str(name) for name in classes)
    if len(found) > MOST_CLASSES:
        raise UserError(f"{file} has {len(found)} names of a {what}; {MOST_CLASSES} is the most")
    for name in found:
        if len(name) > LONGEST or any(unicodedata.category(sign)[0] == "C" for sign in name):
            raise UserError(
                f"{file}: the {what} {shortened(name, 60)!r} has control characters, or more than {LONGEST}"
            )
    return found


def csv_parts(file: Path, label: str | None, group: str | None, site: str | None = None) -> dict[str, Any]:
    """Return the training part that a table holds; ``label``, ``group`` and ``site`` name the columns of these.

    Raises:
        UserError: it is no table of numbers in UTF-8 with a header whose names differ.
    """
    import pandas as pd

    try:  # the type of a column from all of its rows, not per chunk: labels of two types have no order
        frame = pd.read_csv(file, low_memory=False)
        columns = pd.read_csv(file, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, empty, or ragged
        raise UserError(
            f"{file} cannot be read as a table ({str(error).strip()}): it must be UTF-8, with a header "
            "and as many cells in each row."
        ) from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise UserError(f"{file}: its rows have more cells than its header has names")
    if doubled := [*columns[columns.duplicated()]] or [*columns[columns == ""]]:
        raise UserError(
            f"{file}: each column needs a name of its own, not {doubled[0]!r}; numbers of rows are no "
            "feature: leave them out"
        )
    named = [column for column in (label, group, site) if column is not None]
    for column in named:
        if column not in frame:
            raise unknown(f"column in {file}", column, map(str, frame.columns))
    features = frame.drop(columns=named)
    if features.empty:
        raise UserError(f"{file} has {len(frame)} rows and {features.shape[1]} columns of features.")
    for column in map(str, features):
        if not pd.api.types.is_numeric_dtype(features[column]):
            raise UserError(f"{file}: column {column!r} is not numeric; encode it or leave it out.")
    if bad := [str(column) for column in frame if frame[column].isna().any()]:
        raise UserError(f"{file}: column {bad[0]!r} has empty cells; fill or leave out those rows.")
    classes, labels = np.unique(frame[label].to_numpy(), return_inverse=True)
    sites = {} if site is None else numbered_sites(file, {"site_train": frame[site].to_numpy()})
    return {
        **sites,
        "x_train": features.to_numpy(np.float32),
        "y_train": labels,
        "group_train": frame[group].factorize()[0] if group else None,
        "classes": _class_names(file, classes),
    }
