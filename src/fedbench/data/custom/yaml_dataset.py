"""Datasets without code: ``config/datasets/<name>.yaml`` points at an ``.npz``, ``.csv`` or ``.tsv`` file.

    file: my/measurements.csv     # or an .npz with x, y (and x_test, y_test; x_val, y_val; group), Keras' or MedMNIST's
    format: medmnist              # which of the three names the arrays have, to have it checked: plain, keras, medmnist
    layout: NHWC                  # images whose channels come last, where the shape does not say so
    label: diagnosis              # csv: the column of classes; the others are features
    positive: malignant           # the class, or a list of classes, that is positive; the others are negative
    classes: {0: benign, 1: malignant}   # names for labels
    images: my/pictures           # csv: the folder of the pictures that the column `path` lists; they become `size`
    size: [64, 64]                # height and width; grey: true makes them of one channel
    features: [age, dose]         # csv: the columns that are features
    drop: [id]                    # csv: or those that are not used
    missing: drop                 # csv: rows with empty cells are left out; median: numbers become the median
    group: patient                # csv: the column of groups, if any
    site: hospital                # csv: the column of who owns each sample; groups are patients then and stay whole
    whole_groups: true            # never a group in two of the parts: for patients, not for hospitals
    test_share: 0.2               # share of each class that becomes the test part, if the file has none
    standardize: true             # features less their mean, over their standard deviation, both of the training part
    title, licence, source        # what the tables and the record say

or changes a dataset of the library, e.g. the size its images are stored at:

    base: melanoma
    options: {shape: [3, 128, 128]}
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fedbench.data.custom import class_labels, leaks
from fedbench.data.custom import pictures as picture_files
from fedbench.data.custom.arrays import npz_has_both, npz_owners, npz_parts, numbered_sites
from fedbench.data.custom.spec import OwnSpec
from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.labels import hold_out
from fedbench.data.picture import Form
from fedbench.data.stamps import sha256
from fedbench.errors import UserError, unknown
from fedbench.files import Mark, mark
from fedbench.project import Folder
from fedbench.random import stream
from fedbench.safe_yaml import read_yaml
from fedbench.spec import validated

if TYPE_CHECKING:
    from fedbench.data.custom.reading import Reading
    from fedbench.data.custom.tables import Table

FOLDER = Folder("config/datasets")


def load_dataset(path: Path, get: Callable[[str], Dataset]) -> Dataset:
    """Make the dataset that a YAML file describes; ``get`` finds the dataset that it is based on."""
    content = read_yaml(path)
    spec = validated(OwnSpec, content, path)
    if spec.base is None:
        return _dataset(path.stem, spec)
    base = get(spec.base)
    # what is not in its repr does not change what is prepared
    fields = {item.name for item in dataclasses.fields(base) if item.repr} - {"name", "raw", "classes"}
    for option in spec.options:
        if option not in fields:
            raise unknown(f"option in {path}", option, fields)
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in spec.options.items()
    }
    if spec.title:
        given["title"] = spec.title
    given |= {"name": path.stem, "raw": base.raw or base.name}
    try:
        changed = TypeAdapter(type(base)).validate_python({**_fields(base), **given})
    except ValidationError as error:
        raise UserError(f"{path}: options: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}") from None
    return changed


def _dataset(name: str, spec: OwnSpec) -> OwnDataset:
    return OwnDataset(
        name=name,
        title=spec.title or name,
        classes=(),
        shape=() if spec.images is None else Form(spec.size, spec.grey).shape,
        licence=spec.licence,
        source=spec.source or str(spec.file),
        whole_groups=spec.keeps_groups or (spec.file is not None and npz_has_both(spec.file)),
        spec=spec,
    )


@functools.lru_cache(maxsize=64)
def _sites(name: str, spec: str, _mark: Mark | None) -> tuple[tuple[str, ...], int]:
    """Return the sites in a file, and how many have training samples; read again when the file or its YAML changes."""
    return _dataset(name, OwnSpec.model_validate_json(spec)).read_sites()


@functools.lru_cache(maxsize=1)
def _table(path: Path, _mark: Mark | None, *how: Any) -> Table:
    """Read a table once for its sites, its classes and its arrays, and again when it changes."""
    from fedbench.data.custom import tables  # pandas takes as long to import as many a command takes

    return tables.read_table(path, *how)


def _fields(base: Dataset) -> dict[str, Any]:
    return {item.name: getattr(base, item.name) for item in dataclasses.fields(base)}


@dataclass(frozen=True, kw_only=True)
class OwnDataset(Dataset):
    """Arrays from a user's file."""

    spec: OwnSpec

    @property
    def _file(self) -> Path:
        assert self.spec.file is not None
        if not self.spec.file.is_file():
            problem = "is no regular file" if self.spec.file.exists() else "does not exist"
            raise UserError(f"config/datasets/{self.name}.yaml: file {self.spec.file} {problem}.")
        return self.spec.file

    def definition(self) -> str:
        """Change with the YAML file and with the data it points at."""
        return f"{self!r} {self._data()}"

    def content(self) -> str:
        """Change with the data and with how they are read, wherever they lie."""
        facts = self.spec.model_dump(exclude={"file", "format", "title", "licence", "source", "images"})
        return f"{facts} {self._data()}"

    def _data(self) -> str:
        """Return the checksum of the file, and of the pictures that it lists."""
        pictures = "" if self.spec.images is None else f" {picture_files.digest_of(self._images)}"
        return f"{sha256(self._file)}{pictures}"

    @property
    def _images(self) -> Path:
        assert self.spec.images is not None
        if not self.spec.images.is_dir():
            raise UserError(f"config/datasets/{self.name}.yaml: images: {self.spec.images} is no folder.")
        return self.spec.images

    def site_names(self) -> tuple[str, ...]:
        """Return the sites of the file's samples, none where it does not say them."""
        return self._sites[0]

    def count_sites(self) -> int:
        """Return how many sites have training samples; one may have its few samples in the test part alone."""
        return self._sites[1]

    @property
    def _sites(self) -> tuple[tuple[str, ...], int]:
        return _sites(self.name, self.spec.model_dump_json(exclude_unset=True), mark(self._file))

    def read_sites(self) -> tuple[tuple[str, ...], int]:
        """Read the sites of the file's samples, and count those with training samples."""
        parts = self._table() if self.spec.is_table else npz_owners(self._file)
        site = parts.get("site_train")
        if site is None:
            return (), 0
        if "site_test" not in parts:
            group = parts.get("group_train") if self.whole_groups else None
            labels, _ = self._numbered(parts)
            site = np.delete(site, self._test_part(labels["y_train"], group, site)[0])
        return parts["sites"], len(np.unique(site))

    def _numbered(self, parts: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the classes, the labels of each part as indices into them, and remarks."""
        labels: dict[str, np.ndarray] = {name: parts[name] for name in ("y_train", "y_test") if name in parts}
        return class_labels.numbered(self._file, labels, self.spec.classes, self.spec.positive)

    @property
    def of_pictures(self) -> bool:
        """Whether the table lists pictures."""
        return self.spec.images is not None

    def sources(self, folder: Path) -> list[Path]:
        """The user's file, wherever it lies."""
        return [self._file]

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the file and, if it has no test part, split one off (stratified, the same always)."""
        spec = self.spec
        parts, remarks = self._parts()
        del parts["row_train"], parts["row_test"]
        only = np.setdiff1d(parts["y_test"], parts["y_train"])
        if len(only) and len(parts["y_train"]):
            name = parts["classes"][only[0]]
            raise UserError(
                f"{self._file}: the class {name!r} has samples in the test part alone; leave them out"
            )
        remarks += parts.get("remarks", ())
        notes, numbers = parts.get("notes", ()), None
        if spec.images is not None:
            form = Form(spec.size, spec.grey, upright=True)
            for name in ("x_train", "x_test"):
                parts[name] = picture_files.load_pictures(self._images, parts[name].tolist(), form)
        elif spec.is_table:
            from fedbench.data.custom.tables import encoded

            remarks += tuple(leaks.identifiers(parts["x_train"]))
            parts["x_train"], parts["x_test"], more, numbers = encoded(parts["x_train"], parts["x_test"])
            notes += more
        features = parts["x_train"]
        if spec.standardize:
            from fedbench.data.custom.tables import standardized

            parts["x_train"], parts["x_test"] = standardized(
                parts["x_train"], parts["x_test"], None if numbers is None else len(numbers)
            )
            notes += ("features standardized by the training part",)
        cure = "its logarithm, or its rank" if spec.standardize else "`standardize: true`"
        remarks += tuple(leaks.rounded(features, parts["x_train"], numbers or (), cure))
        remarks += tuple(leaks.remarks(parts, self.whole_groups))
        return Arrays(**parts | {"notes": notes, "remarks": remarks})

    def _parts(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the training and the test part, not encoded yet, with the row of each sample, and remarks."""
        spec = self.spec
        parts = self._table() if spec.is_table else npz_parts(self._file, spec.layout, spec.format)
        classes, remarks = self._numbered(parts)
        parts = {
            f"row_{part[2:]}": np.arange(len(y)) for part, y in classes.items() if part[:2] == "y_"
        } | parts
        parts |= classes
        if "x_test" not in parts:
            parts |= self._split(parts)
        return parts, remarks

    def rows(self) -> dict[str, np.ndarray]:
        """Return which rows of the file the training and the test samples are."""
        parts, _ = self._parts()
        return {part: parts[f"row_{part}"] for part in ("train", "test")}

    def groups(self) -> dict[int, str]:
        """Return the group of each row of a table, by its row; none where it says none."""
        return self._named_rows(self.spec.group) if self.spec.is_table else {}

    def reading(self) -> Reading | None:
        """Learn what a model needs to read samples that come later; None where the file is no table."""
        if not self.spec.is_table:
            return None
        from fedbench.data.custom.reading import Reading

        parts, label = self._parts()[0], self._named_rows(self.spec.label)
        rows, numbers = (np.concatenate([parts[f"{of}_train"], parts[f"{of}_test"]]) for of in ("row", "y"))
        classes = {label[row]: int(number) for row, number in zip(rows, numbers, strict=True)}
        return Reading.learned(self.spec, parts["x_train"], classes)

    def _named_rows(self, column: str | None) -> dict[int, str]:
        """Return what a table has in a column, by row."""
        table = self._read()
        return {} if column is None else dict(zip(table.rows, table.named[column], strict=True))

    def _table(self) -> dict[str, Any]:
        """Return the rows of a table as a training part whose features are columns still."""
        from fedbench.data.custom import tables

        spec, images = self.spec, self._images if self.spec.images is not None else None
        table = self._read()
        assert spec.label is not None
        inputs: Any = table.features
        if images is not None:
            inputs = table.named[spec.path]
            picture_files.check_pictures(self._file, images, inputs.tolist())
        labels = tables.as_labels(table.named[spec.label])
        words = {
            str(name): cells.dropna()
            for name, cells in table.features.select_dtypes(exclude=["number", "bool"]).items()
        }
        if spec.group is not None:
            words[spec.group] = table.named[spec.group].tolist()
        remarks = tuple(leaks.alike(words))
        parts = {"x_train": inputs, "y_train": labels, "row_train": table.rows}
        parts |= {"notes": table.notes, "remarks": remarks}
        if spec.group is not None:
            parts["group_train"] = table.numbered(spec.group)
        if spec.site is not None:
            parts |= numbered_sites(self._file, {"site_train": table.named[spec.site]})
        return parts

    def _read(self) -> Table:
        spec = self.spec
        how = (tuple(spec.columns), spec.chosen, spec.drop, spec.missing)
        return _table(self._file, mark(self._file), *how)

    def facts(self) -> tuple[tuple[int, ...], int]:
        """Return the shape of a sample and the number of classes; of pictures the table alone is read for it."""
        if self.spec.images is None:
            arrays = self.prepare(Path())
            top = max(arrays.y_train.max(initial=0), arrays.y_test.max(initial=0))
            return arrays.x_train.shape[1:], int(top) + 1
        classes, _ = self._numbered({"y_train": self._table()["y_train"]})
        return self.shape, len(classes["classes"])

    def _split(self, parts: dict[str, Any]) -> dict[str, Any]:
        """Return a training and a test part."""
        x, y, row, group, site = (parts.get(f"{name}_train") for name in ("x", "y", "row", "group", "site"))
        assert x is not None and y is not None
        if len(x) != len(y) or len(y if group is None else group) != len(y):
            raise UserError(f"{self._file} has {len(x)} inputs and {len(y)} labels, or other groups.")
        if site is not None and len(site) != len(y):
            raise UserError(f"{self._file} has {len(y)} labels and {len(site)} sites.")
        test, how = self._test_part(y, group if self.whole_groups else None, site)
        train = np.setdiff1d(np.arange(len(y)), test)
        how += ", in whole groups" if self.whole_groups else ""
        note = f"test part: {self.spec.test_share:.0%} of each class{how}, drawn once"
        result: dict[str, Any] = {"notes": (*parts.get("notes", ()), note)}
        for name, array in (("x", x), ("y", y), ("row", row), ("group", group), ("site", site)):
            if array is not None:
                rows = getattr(array, "iloc", array)
                result |= {f"{name}_train": rows[train], f"{name}_test": rows[test]}
        if "held_train" in parts:
            result["held_train"] = parts["held_train"][train]
        return result

    def _test_part(
        self, y: np.ndarray, group: np.ndarray | None, site: np.ndarray | None
    ) -> tuple[np.ndarray, str]:
        """Return the positions of the test part, and where each class is held out: at each site if its groups do."""
        share, how = self.spec.test_share, ""
        try:
            if site is None:
                test = hold_out(y, share, stream(0, "own test part"), group)
            else:
                try:
                    classes = site * (int(y.max(initial=0)) + 1) + y
                    test = hold_out(classes, share, stream(0, "own test part"), group)
                    how = " at each site"
                except UserError:  # a site has a class in one group alone
                    test = hold_out(y, share, stream(0, "own test part"), group)
                    how = " over all sites together, as a site has too few groups of a class"
        except UserError as error:
            raise UserError(f"{self._file}: test_share: {error}") from None
        for size, part, cure in (
            (len(test), "test", "a larger"),
            (len(y) - len(test), "training", "a smaller"),
        ):
            if len(y) and not size:
                raise UserError(
                    f"{self._file}: test_share: {share:.4g} of each of {len(np.unique(y))} classes leaves no "
                    f"{part} sample of {len(y)}: take {cure} share, or labels of fewer classes"
                )
        return test, how
