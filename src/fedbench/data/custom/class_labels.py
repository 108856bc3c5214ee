"""Labels of one's own data as classes: whatever words or numbers they are, which is which, and which is positive."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.errors import UserError, shortened, unknown

MOST_CLASSES = 10_000
"""Classes that a file of one's own may have: each is counted, for each client."""
LONGEST = 100
"""Characters of a class's name."""
YES = {"1", "true", "yes", "y", "positive", "pos"}
"""Names of a class that is the positive one without being declared so."""

Word = bool | int | float | str
"""A class as a YAML has it: ``yes`` is a truth value there, ``1`` a number."""


def numbered(
    file: Path, labels: Mapping[str, np.ndarray], renamed: Mapping[Word, str] | None, positive: Sequence[Word]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return ``classes`` and each part's labels [n] as indices into them; remarks say what is positive and negative.

    ``renamed`` has a name for each label as the file has it: labels of one name are one class. The ``positive`` classes
    come last, so that two classes are negative and positive; of more classes they become one, named ``a+b``, and the
    others another.

    Raises:
        UserError: a label is not a whole number, is not renamed, differs from another in its writing alone, or no class
            is called as ``positive`` says.
    """
    check_alike(file, "labels", *labels.values())
    values, place = np.unique(np.concatenate([*labels.values()]), return_inverse=True)
    if len(values) > MOST_CLASSES:
        raise UserError(f"{file}: its labels are {len(values)} different ones; {MOST_CLASSES} is the most")
    if values.dtype.kind == "f" and len(odd := values[~(values == np.round(values)) | np.isinf(values)]):
        raise UserError(
            f"{file}: the label {odd[0]:g} is not a whole number; classes are whole numbers or words"
        )
    values = as_text(file, "labels", values).tolist()
    named = _named(file, values, renamed)
    classes = checked(file, [*dict.fromkeys(renamed.values())] if renamed else values)
    numbers = {name: number for number, name in enumerate(classes)}
    number, remarks = np.array([numbers[name] for name in named])[place], tuple[str, ...]()
    if positive:
        counts = np.bincount(number, minlength=len(classes))
        classes, sign, remarks = _two_classes(file, classes, positive, counts)
        number = sign[number]
    elif len(classes) == 2 and classes[1].casefold() not in YES:
        remarks = (
            f"where labels stay as they are, {classes[1]} is positive, as it comes after {classes[0]}; `positive:` in"
            " the dataset's YAML chooses",
        )
    ends = np.cumsum([len(part) for part in labels.values()])[:-1]
    parts = dict(zip(labels, np.split(number, ends), strict=True))
    return {"classes": classes, **parts}, remarks


def as_text(file: Path, what: str, array: np.ndarray) -> np.ndarray:
    """Return an array as text; whole numbers are written alike, whatever their type.

    Raises:
        UserError: it holds bytes that are not characters.
    """
    integral = array.dtype.kind == "f" and (array % 1 == 0).all()
    try:
        return np.array((array.astype(np.int64) if integral else array).astype(str).tolist(), dtype=str)
    except (UnicodeError, SystemError):
        raise UserError(f"{file}: its {what} are not text; save them as str") from None


def check_alike(file: Path, what: str, *parts: np.ndarray) -> None:
    """Raise UserError unless the arrays of all parts are numbers, or all text."""
    if any(part.dtype.kind not in "biufUS" for part in parts):
        raise UserError(f"{file}: its {what} are not text; save them as str")
    if len({part.dtype.kind in "US" for part in parts}) > 1:
        raise UserError(f"{file}: {what} are text in one part and numbers in another; make them alike")


def _named(file: Path, values: Sequence[str], renamed: Mapping[Word, str] | None) -> Sequence[str]:
    """Return the class of each of the ``values``."""
    if renamed is None:
        if alike := twins(values, as_number):
            raise UserError(
                f"{file}: the labels {alike[0]!r} and {alike[1]!r} differ in writing alone: write them alike, or name "
                "each under `classes:`"
            )
        return values
    names = []
    for value in values:
        meant = [name for word, name in renamed.items() if means(word, value)]
        if not meant:
            raise UserError(f"{file}: {unknown('label', value, map(str, renamed))} Name it under classes.")
        names.append(meant[0])
    return names


def _two_classes(
    file: Path, names: Sequence[str], positive: Sequence[Word], counts: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """Return the names of a negative and a positive class, 0 or 1 for each of the ``names``, and remarks.

    These name the classes that were merged into the negative one, with their samples, ``counts``.
    """
    for word in positive:
        if not any(means(word, name) for name in names):
            raise UserError(f"{file}: positive: {unknown('class', str(word), names)}")
    sign = np.array([any(means(word, name) for word in positive) for name in names]).astype(np.int64)
    if sign.all():
        raise UserError(f"{file}: positive names every class: there would be no negatives")
    sides = ["+".join(name for name, of in zip(names, sign, strict=True) if of == side) for side in (0, 1)]
    two = tuple(side if len(side) <= LONGEST else shortened(side, LONGEST - 10) for side in sides)
    merged = [f"{name} ({n})" for name, n, of in zip(names, counts, sign, strict=True) if not of]
    told = f"negative is what is not declared positive: {shortened(', '.join(merged), 200)}"
    return two, sign, (told,) if len(merged) > 1 else ()


def twins(names: Iterable[str], fold: Callable[[str], str]) -> tuple[str, str] | None:
    """Return two different names that are equal once each is folded, None where all differ."""
    seen = dict[str, str]()
    for name in names:
        if (first := seen.setdefault(fold(name), name)) != name:
            return first, name
    return None


def folded(name: str) -> str:
    """Return a name without what a reader overlooks: blanks, case, and which code points write a letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def as_number(name: str) -> str:
    """Return a name :func:`folded`, or a number as every other writing of it: 01, 1 and 1.0 are one."""
    try:
        return str(Decimal(name).normalize() + 0)
    except ArithmeticError:
        return folded(name)


def means(word: Word, name: str) -> bool:
    """Say whether a word of a YAML means a class: ``yes`` and ``true`` are one truth value there, 1.0 the number 1."""
    if isinstance(word, bool):
        return name.casefold() in (("true", "yes", "y", "on") if word else ("false", "no", "n", "off"))
    if isinstance(word, float) and word.is_integer():
        word = int(word)
    return str(word) == name


def checked(file: Path, names: Sequence[str], what: str = "class") -> tuple[str, ...]:
    """Return the names of classes or sites, which stand in tables.

    Raises:
        UserError: one could not stand there, or two differ in what a reader overlooks.
    """
    for name in names:
        if not name or len(name) > LONGEST or any(unicodedata.category(sign)[0] == "C" for sign in name):
            raise UserError(
                f"{file}: the {what} {shortened(name, 60)!r} is empty, has control characters, or more than {LONGEST}"
            )
    if alike := twins(names, folded):
        raise UserError(
            f"{file}: the names {alike[0]!r} and {alike[1]!r} of a {what} differ in writing alone: write them alike"
        )
    return tuple(names)
