"""Prepared arrays on disk: a folder of ``.npy`` files, ``<data_dir>/prepared/<dataset>``, and a summary beside it.

The summary, a ``.json``, has the checksums of the arrays. It is written last and vouches for them.
"""

from __future__ import annotations

import functools
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedbench import sealed_json
from fedbench.data import datasets
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.decoding import workplace
from fedbench.data.files import checksum, intact, read_json, write_npy
from fedbench.errors import DiskError, UserError
from fedbench.files import locked
from fedbench.spec import digest

log = logging.getLogger(__name__)

VERSION = 3
"""Raised when the same raw files give other arrays than before: what is prepared is made again."""
INPUTS = ("x_train", "x_test")
OWNERS = ("group_train", "held_train", "site_train", "site_test")
FORM = "npy:"
"""How checksums of prepared arrays begin: those of other forms are of files that cannot be compared."""


@dataclass(frozen=True)
class Prepared(Arrays):
    """Arrays as they were prepared; ``summary`` is the JSON beside them. Of joined datasets each is a site."""

    summary: dict[str, Any] = field(default_factory=dict)


def prepared_path(name: str, data_dir: str | Path) -> Path:
    """Return where the summary of a dataset is kept; its arrays lie in the folder of the same name."""
    return Path(data_dir) / "prepared" / f"{name}.json"


def array_path(path: Path, array: str) -> Path:
    """Return where an array is kept, by the path of the summary."""
    return path.with_suffix("") / f"{array}.npy"


def prepare(
    name: str, data_dir: str | Path, mirror: str | Path | None = None, force: bool = False, cores: int = 1
) -> Path:
    """Fetch and prepare a dataset unless that is done already; return the path of its summary.

    Pictures are decoded by ``cores`` processes; those that a preparation had decoded when it was ended are not
    decoded again, unless by ``force``.

    Raises:
        UserError: the dataset is unknown, or its raw files cannot be had or are not what they should be.
    """
    dataset = datasets.get(name)
    path = prepared_path(name, data_dir)
    if not force and current(name, data_dir):
        return path
    wait = functools.partial(log.warning, "another process is preparing %s: waiting for it", name)
    with locked(Path(data_dir) / f".{dataset.raw or name}.lock", wait):  # not to fetch into the same files
        if not force and current(name, data_dir):
            return path
        folder = dataset.fetch(Path(data_dir), None if mirror is None else str(mirror))
        decoded = path.with_name(f".{name}.pictures")
        if force:
            shutil.rmtree(decoded, ignore_errors=True)
        # now: a file that is written meanwhile is read anew the next time
        definition = _definition(dataset)
        try:
            with workplace(decoded, cores):
                arrays = dataset.prepare(folder)
            content = _content(dataset, arrays)
        except MemoryError:
            raise UserError(f"dataset {name!r} does not fit into the memory that is free") from None
        write_prepared(path, content, _summary(dataset, arrays, folder) | {"definition": definition})
        shutil.rmtree(decoded, ignore_errors=True)
    for remark in arrays.remarks:
        log.warning("%s: %s", name, remark)
    sizes = len(arrays.y_train), len(arrays.y_test)
    log.info("%s: %d training and %d test samples in %s", name, *sizes, path.with_suffix(""))
    return path


def write_prepared(path: Path, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
    """Write arrays, then the summary that vouches for them."""
    checksums = {part: write_npy(array_path(path, part), array) for part, array in arrays.items()}
    digests = {"arrays": checksums, "sha256": f"{FORM}{sealed_json.checksum(checksums)}"}
    sealed_json.write(path, facts | digests)
    for file in path.with_suffix("").glob("*.npy"):
        if file.stem not in checksums:  # an earlier preparation had it
            file.unlink()


def load_prepared(name: str, data_dir: str | Path, inputs: bool = True) -> Prepared:
    """Read the labels of a dataset and map its inputs into memory, which all processes of a machine share.

    Without ``inputs``, ``x_train`` and ``x_test`` are left empty.

    Raises:
        UserError: it is not prepared, or a file is damaged; the message names the file and the cure.
    """
    summary, path = read_summary(name, data_dir), prepared_path(name, data_dir)
    wanted = [part for part in summary["arrays"] if inputs or part not in INPUTS]
    fields: dict[str, Any] = {"sites": tuple(summary.get("sites", ()))}
    fields |= {fact: tuple(summary[fact]) for fact in ("notes", "classes")}
    for part in wanted:
        file = array_path(path, part)
        if not intact(file, summary["arrays"][part]):
            raise UserError(f"{file} is not what was prepared. {_cure(name, data_dir)}")
        fields[part] = np.load(file, mmap_mode="r" if part in INPUTS else None, allow_pickle=False)
    return Prepared(**dict.fromkeys(INPUTS, np.empty(0)) | fields, summary=summary)


def current(name: str, data_dir: str | Path) -> bool:
    """Say whether arrays are there, whole, made by today's definition and from the raw files as they are now."""
    path = prepared_path(name, data_dir)
    try:
        facts = read_json(path, "")
    except DiskError:
        raise
    except UserError as error:
        if path.is_file():
            log.warning("%s: it is made again", str(error).partition(". ")[0])
        return False
    dataset = datasets.get(name)
    if facts.get("definition") != _definition(dataset):
        return False
    for part, sha in facts.get("arrays", {}).items():
        if not intact(file := array_path(path, part), sha):
            log.warning("%s is not what was prepared: it is made again", file)
            return False
    return not _raw_changed(dataset, facts, path)


def _raw_changed(dataset: Dataset, facts: dict[str, Any], path: Path) -> bool:
    """Say whether a raw file was written after the arrays that were prepared from it, and is not what it was then.

    A copy that keeps an older date (``cp -p``) was written, too: the time of a file's last change counts. Raw files
    that are gone, or lie on a mirror, are not asked.
    """
    made, folder = path.stat().st_mtime, dataset.raw_dir(path.parents[1])
    for name, sha in facts.get("files", {}).items():
        if (file := folder / name).is_file():
            state = file.stat()
            if max(state.st_mtime, state.st_ctime) > made and not intact(file, sha):
                return True
    return False


def read_summary(name: str, data_dir: str | Path) -> dict[str, Any]:
    """Read the facts about prepared arrays: sizes, classes, licence, sources, checksum.

    Raises:
        UserError: it is not prepared, or the file is damaged.
    """
    return read_json(prepared_path(name, data_dir), _cure(name, data_dir))


def count(labels: np.ndarray, n_classes: int) -> dict[str, int]:
    """Count labels ``[n]`` per class as JSON wants it: ``{"0": 5923, ...}``."""
    return {str(label): int(n) for label, n in enumerate(np.bincount(labels, minlength=n_classes))}


def _cure(name: str, data_dir: str | Path) -> str:
    return f"Make it with: python data_prep/prepare.py {name} --data-dir {data_dir}"


def _definition(dataset: Dataset) -> str:
    """Return what changes whenever preparing would give something else."""
    return digest([VERSION, dataset.definition()])


def _content(dataset: Dataset, arrays: Arrays) -> dict[str, np.ndarray]:
    """Check what a dataset made against what it said, and bring it into the stored types."""

    def check(holds: bool, problem: str) -> None:
        if not holds:
            raise UserError(f"dataset {dataset.name!r}: {problem}.")

    check(isinstance(arrays, Arrays), f"prepare has to return Arrays, not {type(arrays).__name__}")
    for name in ("x_train", "y_train", "x_test", "y_test", *OWNERS):
        given = getattr(arrays, name)
        check(isinstance(given, np.ndarray | None), f"{name} is a {type(given).__name__}, not a numpy array")
    kinds = [part.dtype for part in (arrays.x_train, arrays.x_test)]
    alike = kinds.count(np.dtype(np.uint8)) != 1
    check(
        alike,
        "x_train is {}, x_test {}: of these uint8 alone is divided by 255; make them alike".format(*kinds),
    )
    content = dict[str, np.ndarray]()
    n_classes = len(arrays.classes or dataset.classes) or np.inf
    shape = dataset.shape or arrays.x_train.shape[1:]
    for part, x, y in (("train", arrays.x_train, arrays.y_train), ("test", arrays.x_test, arrays.y_test)):
        check(len(x) == len(y) > 0, f"{len(x)} {part} inputs and {len(y)} labels")
        check(y.ndim == 1, f"{part} labels have shape {list(y.shape)}, expected one value per sample")
        check(x.shape[1:] == shape, f"a {part} input has shape {x.shape[1:]}, expected {shape}")
        are_classes = np.issubdtype(y.dtype, np.integer) and y.min() >= 0 and y.max() < n_classes
        check(are_classes, f"{part} labels must be whole numbers from 0 to {n_classes - 1}")
        with np.errstate(over="ignore"):  # said below: 1e300 is finite, but not in single precision
            stored = x if x.dtype == np.uint8 else x.astype(np.float32)
        if x.dtype != np.uint8:
            finite = np.isfinite(stored).reshape(len(x), -1).all(1)
            check(
                bool(finite.all()),
                f"{(~finite).sum()} of {len(x)} {part} inputs, first [{finite.argmin()}], are not finite in float32: "
                "replace them, or leave them out",
            )
        content |= {f"x_{part}": stored, f"y_{part}": y.astype(np.int64)}
    return content | _owners(dataset, arrays, check)


def _owners(dataset: Dataset, arrays: Arrays, check: Callable[[bool, str], None]) -> dict[str, np.ndarray]:
    """Likewise for what is known of each sample besides: group, official validation part, site."""
    content = {name: array for name in OWNERS if (array := getattr(arrays, name)) is not None}
    lacking = dataset.whole_groups and "group_train" not in content
    check(not lacking, "whole_groups needs the group of each sample (of an .npz: the array 'group')")
    for name, array in content.items():
        n = len(arrays.y_test if name == "site_test" else arrays.y_train)
        check(array.shape == (n,), f"{name} has shape {list(array.shape)}, expected one value per sample")
        check(name != "held_train" or array.dtype == bool, "held_train must be true or false, not numbers")
        if name.startswith("site"):
            check(0 <= array.min() <= array.max() < len(arrays.sites), f"{name} must be an index into sites")
            content[name] = array.astype(np.int64)
    if (group := content.get("group_train")) is not None:
        if group.dtype.kind in "USO":  # names
            group = np.unique(group, return_inverse=True)[1]
        with np.errstate(invalid="ignore"):  # 1e300 and nan become a number, which is not theirs
            content["group_train"] = group.astype(np.int64)
        check(np.array_equal(content["group_train"], group), "groups must be whole numbers or names")
    return content


def _summary(dataset: Dataset, arrays: Arrays, folder: Path) -> dict[str, Any]:
    n_classes = int(max(arrays.y_train.max(), arrays.y_test.max())) + 1
    classes = arrays.classes or dataset.classes or tuple(str(label) for label in range(n_classes))
    parts = {"train": arrays.y_train, "test": arrays.y_test}
    return {
        "dataset": dataset.name,
        **{fact: getattr(dataset, fact) for fact in ("title", "licence", "source")},
        "shape": list(arrays.x_train.shape[1:]),
        "classes": list(classes),
        **{part: {"n": len(y), "class_counts": count(y, len(classes))} for part, y in parts.items()},
        "official_validation": 0 if arrays.held_train is None else int(arrays.held_train.sum()),
        "notes": list(arrays.notes),
        **{fact: list(of) for fact in ("remarks", "sites", "features") if (of := getattr(arrays, fact))},
        "files": {
            str(path.relative_to(folder) if path.is_relative_to(folder) else path): checksum(path)
            for path in dataset.sources(folder)
        },
    }
