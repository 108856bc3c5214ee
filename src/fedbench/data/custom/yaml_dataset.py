"""Datasets without code: ``config/datasets/<name>.yaml`` describes a file, or changes a dataset of the library.

    file: my/measurements.csv
    label: diagnosis

    base: melanoma
    options: {shape: [3, 128, 128]}

:class:`fedbench.data.custom.spec.OwnSpec` has all keys.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fedbench.data.custom import class_labels, leaks, split
from fedbench.data.custom.arrays import npz_has_both, npz_parts, numbered_sites
from fedbench.data.custom.spec import OwnSpec
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.decoding import Pictures
from fedbench.data.files import digest_of
from fedbench.data.picture import Form
from fedbench.errors import UserError, unknown
from fedbench.files import Mark, mark
from fedbench.project import Folder
from fedbench.safe_yaml import read_yaml
from fedbench.spec import validated

if TYPE_CHECKING:
    from fedbench.data.custom.encoding import Reading
    from fedbench.data.custom.tables import Table

FOLDER = Folder("config/datasets")
PARTS = ("train", "test")


def load_dataset(path: Path, get: Callable[[str], Dataset]) -> Dataset:
    """Make the dataset that a YAML file describes; ``get`` finds the dataset that it is based on."""
    spec, name = validated(OwnSpec, read_yaml(path), path), path.stem
    if spec.file is None:
        return _changed(get(str(spec.base)), name, spec, path)
    return OwnDataset(
        name=name,
        title=spec.title or name,
        classes=(),
        shape=() if spec.images is None else Form(spec.size, spec.grey).shape,
        licence=spec.licence,
        source=spec.source or str(spec.file),
        # where a site is named, groups are its patients
        whole_groups=spec.whole_groups or bool(spec.site and spec.group) or npz_has_both(spec.file),
        spec=spec,
    )


def _changed(base: Dataset, name: str, spec: OwnSpec, path: Path) -> Dataset:
    """Return the base with other values of its fields."""
    # what is not in its repr does not change what is prepared
    fields = {item.name for item in dataclasses.fields(base) if item.repr} - {"name", "raw", "classes"}
    for option in spec.options:
        if option not in fields:
            raise unknown(f"option in {path}", option, fields)
    title = {"title": spec.title} if spec.title else {}
    given = spec.options | title | {"name": name, "raw": base.raw or base.name}
    try:
        return TypeAdapter(type(base)).validate_python({**vars(base), **given})
    except ValidationError as error:
        raise UserError(f"{path}: options: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}") from None


@functools.lru_cache(maxsize=1)
def _table(_mark: Mark | None, *how: Any) -> Table:
    """Read a table once for its sites, its classes and its arrays, and again when it changes."""
    from fedbench.data.custom import tables  # pandas takes as long to import as many a command takes

    return tables.read_table(*how)


@functools.lru_cache(maxsize=64)
def _without_inputs(dataset: OwnDataset, _yaml: str, _mark: Mark | None) -> dict[str, Any]:
    """Return :meth:`OwnDataset.parts` without inputs; the file is read again when it or its YAML changes.

    The text of the YAML tells `positive: yes` from `positive: 1`, which are equal.
    """
    return dataset.parts(inputs=False)


@dataclass(frozen=True, kw_only=True)
class OwnDataset(Dataset):
    """Arrays from a user's file."""

    spec: OwnSpec = field(hash=False)

    @property
    def _file(self) -> Path:
        assert self.spec.file is not None
        if not self.spec.file.is_file():
            problem = "is no regular file" if self.spec.file.exists() else "does not exist"
            raise UserError(f"config/datasets/{self.name}.yaml: file {self.spec.file} {problem}.")
        return self.spec.file

    @property
    def _images(self) -> Path | None:
        folder = self.spec.images
        if folder is not None and not folder.is_dir():
            raise UserError(f"config/datasets/{self.name}.yaml: images: {folder} is no folder.")
        return folder

    @property
    def of_pictures(self) -> bool:
        return self.spec.images is not None

    def definition(self) -> str:
        """Change with the YAML file and with the data it points at."""
        return f"{self!r} {self._data()}"

    def content(self) -> str:
        """Change with the data and with how they are read, wherever they lie."""
        later = set() if self.spec.split else {"split"}  # runs from before it keep their keys
        facts = self.spec.model_dump(exclude={"file", "title", "licence", "source", "images"} | later)
        return f"{facts} {self._data()}"

    def _data(self) -> str:
        """Return the checksum of the file, and of the pictures that it lists."""
        pictures = "" if self._images is None else f" {digest_of(self._images)}"
        return f"{digest_of(self._file)}{pictures}"

    def sources(self, folder: Path) -> list[Path]:
        return [self._file]

    def site_names(self) -> tuple[str, ...]:
        sites: tuple[str, ...] = self._known().get("sites", ())
        return sites

    def count_sites(self) -> int:
        """Return how many sites have training samples; one may have its few samples in other parts alone."""
        known = self._known()
        return len(np.unique(known["site_train"][split.seen(known)])) if "site_train" in known else 0

    def facts(self) -> tuple[tuple[int, ...], int]:
        """Return the shape of a sample and the number of classes; of pictures the table alone is read for it."""
        shape = self.shape if self.of_pictures else self.prepare(Path()).x_train.shape[1:]
        return shape, len(self._known()["classes"])

    def rows(self) -> dict[str, np.ndarray]:
        return {part: self._known()[f"row_{part}"] for part in PARTS}

    def groups(self) -> dict[int, str]:
        if self.spec.group is None:
            return {}
        known, groups = self._known(), dict[int, str]()
        for part in PARTS:
            groups |= zip(known[f"row_{part}"], known[f"owner_{part}"], strict=True)
        return groups

    def reading(self) -> Reading | None:
        """Learn what a model needs to read samples that come later; None where the file is no table."""
        if not self.spec.is_table:
            return None
        from fedbench.data.custom.encoding import Reading

        parts = self.parts()
        classes = {
            str(word): int(y)
            for part in PARTS
            for word, y in zip(parts[f"word_{part}"], parts[f"y_{part}"], strict=True)
        }
        return Reading.of_dataset(self.spec, parts["x_train"][split.seen(parts)], classes)

    def _known(self) -> dict[str, Any]:
        return _without_inputs(self, repr(self), mark(self._file))

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the file and, if it has no test part, split one off (stratified, the same always)."""
        parts = self.parts()
        only = np.setdiff1d(parts["y_test"], parts["y_train"][split.seen(parts)])
        if len(only) and len(parts["y_train"]):
            name = parts["classes"][only[0]]
            raise UserError(
                f"{self._file}: the class {name!r} has test samples and none to train on; leave them out"
            )
        self._encode(parts)
        parts["remarks"] += tuple(leaks.remarks(parts, self.whole_groups))
        return Arrays(**{name: parts[name] for name in Arrays.__dataclass_fields__ if name in parts})

    def _encode(self, parts: dict[str, Any]) -> None:
        """Make numbers of the inputs of both parts; add notes and remarks on how they became that."""
        spec, (train, test), seen = self.spec, (parts[f"x_{part}"] for part in PARTS), split.seen(parts)
        if self._images is not None:
            pictures, form = Pictures(self._images, depth=0), Form(spec.size, spec.grey, upright=True)
            pictures.check([*train.tolist(), *test.tolist()], self._file)
            train, test = (pictures.load(part.tolist(), form) for part in (train, test))
        if spec.is_table and spec.images is None:
            from fedbench.data.custom.encoding import Encoding

            encoding = Encoding.learned(train[seen], spec.standardize)
            parts["notes"] += encoding.notes(train, test)
            parts["remarks"] += tuple(leaks.identifiers(train[seen]))
            table, labels = train[seen], parts["y_train"][seen]
            train, test = encoding.of(train), encoding.of(test)
            columns, parts["features"] = zip(*encoding.features(), strict=True)
            parts["remarks"] += tuple(leaks.second_labels(table, train[seen], labels, columns))
        elif spec.standardize and seen.any() and train.shape[1:] == test.shape[1:]:  # else it is said later
            from fedbench.data.custom.encoding import scaled, scaling_of

            scaling = scaling_of(train[seen])
            train, test = (scaled(part, *scaling) for part in (train, test))
        if spec.standardize:
            parts["notes"] += ("features standardized by the training part",)
        parts |= {"x_train": train, "x_test": test}

    def parts(self, inputs: bool = True) -> dict[str, Any]:
        """Return fields of :class:`Arrays` of both parts, not encoded yet, and of each sample its ``row`` in the file.

        Features of a table are columns still, and its samples have the ``word`` of their class and that of their
        ``owner``, the group. Without ``inputs`` there is no ``x_train`` and no ``x_test``.
        """
        spec = self.spec
        parts = self._columns(inputs) if spec.is_table else npz_parts(self._file, spec.layout, inputs)
        labels = {name: parts[name] for name in parts if name.startswith("y_")}
        classes, remarks = class_labels.numbered(self._file, labels, spec.classes, spec.positive)
        rows = {name.replace("y", "row"): np.arange(len(y)) for name, y in labels.items()}
        remarks += parts.get("remarks", ())
        parts = {"notes": (), **rows, **parts, **classes, "remarks": remarks}
        if "y_test" in labels:
            return parts
        if spec.split is not None:
            return split.by_column(self._file, spec.split, parts.pop("part_train").tolist(), parts)
        return split.drawn(self._file, spec.test_share, parts, self.whole_groups)

    def _columns(self, inputs: bool) -> dict[str, Any]:
        """Return the rows of a table as a training part."""
        import pandas as pd

        from fedbench.data.custom.tables import as_labels

        spec, images = self.spec, self._images
        features = spec.features if images is None else ()
        table = _table(mark(self._file), self._file, spec.columns, features, spec.drop, spec.missing)
        assert spec.label is not None
        words = table.named[spec.label]
        parts: dict[str, Any] = {"row_train": table.rows, "word_train": words, "y_train": as_labels(words)}
        parts |= {"notes": table.notes, "remarks": table.remarks}
        if inputs:
            parts["x_train"] = table.features if images is None else table.named[spec.path]
        if spec.group is not None:
            owners = table.named[spec.group]
            if alike := class_labels.twins(
                dict.fromkeys(owners.tolist()), lambda name: " ".join(name.split())
            ):
                raise UserError(
                    f"{self._file}: column {spec.group!r} has {alike[0]!r} and {alike[1]!r}, which differ in blanks "
                    "alone: write them alike"
                )
            parts |= {"owner_train": owners, "group_train": pd.factorize(owners)[0]}
        if spec.split is not None:
            parts["part_train"] = table.named[spec.split]
        if spec.site is not None:
            parts |= numbered_sites(self._file, {"site_train": table.named[spec.site]})
        return parts
