"""What a YAML file under ``config/datasets`` may say of one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedbench.data.custom.class_labels import Word
from fedbench.spec import Spec

TABLES = (".csv", ".tsv", ".xlsx")
ARCHIVE, TABLE = "an .npz file", "a table (.csv, .tsv, .xlsx)"
PICTURES = "images, the folder of the pictures that a table lists"
GOES_WITH = {
    "base": ("options",),
    "file": ("positive", "classes", "whole_groups", "test_share", "standardize"),
    ARCHIVE: ("layout",),
    TABLE: ("label", "group", "site", "split", "features", "drop", "missing", "images"),
    PICTURES: ("path", "size", "grey"),
}
"""Keys that count only beside another."""


def _listed(value: Any) -> Any:
    """Take one for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


class OwnSpec(Spec):
    """Your own data: an archive of arrays, a table, a folder of pictures, or a dataset of the library with changes."""

    file: Path | None = None
    """An `.npz` or a table. A table is a `.csv` or `.tsv` as a spreadsheet saves it (separated by commas, semicolons or
    tabs, with decimal points or commas) or the first sheet of an `.xlsx` (`pip install 'fedbench-suite[excel]'`). An
    `.npz` has `x` and `y`, and optionally `x_test` and `y_test`, `x_val` and `y_val`, `group` (and `group_test`),
    `site` (and `site_test`); the names of Keras (`x_train`, ...) and MedMNIST (`train_images`, ...) are also read.
    Labels are numbers, truth values or text."""
    label: str | None = None
    """Of a table: the column of classes."""
    group: str | None = None
    """Of a table: the column of groups (patients, hospitals, ...), which is not a feature."""
    site: str | None = None
    """Of a table: the column of the owner of each sample, such as the hospital. The groups are then patients of a site,
    and no patient has samples in two of the training, validation and test parts that are drawn."""
    split: str | None = None
    """Of a table: the column that says of each row whether it is of the `train`, `test` or `validation` part.
    Validation rows are those of `validation: own`, and not used otherwise. Default: a test part is drawn."""
    positive: Annotated[tuple[Word, ...], BeforeValidator(_listed, Word | tuple[Word, ...])] = ()
    """The positive class or classes; the data then have two classes, and label 1 is positive. Default: of two classes,
    the last in order is positive, and a remark says so."""
    classes: dict[Word, str] | None = Field(None, min_length=1)
    """Names for labels, such as `{0: benign, 1: malignant}`; labels with the same name become one class."""
    features: tuple[str, ...] | None = Field(None, min_length=1)
    """Of a table: the columns that are features. Default: all except label, group, site and split. A column of words
    becomes one feature for each word of the training part."""
    drop: Annotated[tuple[str, ...], BeforeValidator(_listed, str | tuple[str, ...])] = ()
    """Of a table: columns that are not used."""
    missing: Literal["error", "drop", "median"] = "error"
    """Of a table: the treatment of empty cells. `error`: refuse the table. `drop`: leave the row out. `median`: fill a
    number with the median of the training part; in a column of words, an empty cell counts as a word. Labels, groups
    and sites are never filled in."""
    images: Path | None = None
    """Of a table: the folder of the pictures that the table lists: PNG, JPEG or DICOM, of 8 or 16 bits, turned as their
    EXIF tag says. The pictures are the inputs, and other columns are not used."""
    path: str = "path"
    """With `images`: the column with the path of each picture in the folder."""
    size: tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=4096)]] = (64, 64)
    """With `images`: the height and width to which pictures are resized."""
    grey: bool = False
    """With `images`: whether pictures get one channel instead of three."""
    whole_groups: bool = False
    """Whether all samples of a group stay in one of the training, validation and test parts, as is right for patients.
    If false, samples are drawn whatever their group, so that each part has samples of every hospital."""
    layout: Literal["NCHW", "NHWC"] | None = None
    """The place of the channels (1, 3 or 4) of images, if the shape does not show it."""
    test_share: float = Field(0.2, gt=0, lt=1)
    """The share of each class that becomes the test part, if the file has no test part."""
    standardize: bool = False
    """Whether each feature is standardised: the training part's mean is subtracted, its standard deviation divides.
    Pictures of a folder are standardised by `train.normalize`."""
    title: str | None = None
    """The dataset's name in tables. Default: the file's name."""
    licence: str = "not stated"
    """The terms of use, for tables and records."""
    source: str | None = None
    """The origin of the data, for tables and records. Default: the file."""
    base: str | None = None
    """Instead of `file`: the name of a dataset of the library, which is changed."""
    options: dict[str, Any] = Field(default_factory=dict)
    """With `base`: the changes, such as `{shape: [3, 128, 128]}`."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.file is None) == (self.base is None):
            raise ValueError("give either file (an .npz or .csv) or base (a dataset to change)")
        if self.file is not None and self.file.suffix not in (".npz", *TABLES):
            cure = "; save the spreadsheet as .xlsx or CSV" if self.file.suffix.startswith(".xls") else ""
            raise ValueError(f"file must end with .npz, .csv or .xlsx{cure}")
        is_so = {"base": self.base, "file": self.file, TABLE: self.is_table, PICTURES: self.images}
        is_so[ARCHIVE] = self.file is not None and not self.is_table
        for what, keys in GOES_WITH.items():
            if not is_so[what] and (said := [key for key in keys if key in self.model_fields_set]):
                raise ValueError(f"{said[0]} goes with {what}")
        if self.is_table and self.label is None:
            raise ValueError("label names the column of classes of a table: give it")
        if self.split is not None and "test_share" in self.model_fields_set:
            raise ValueError("test_share draws a test part, which split gives: leave out one")
        if self.whole_groups and self.is_table and self.group is None:
            raise ValueError("whole_groups needs group, the column of groups")
        columns_alone = self.features or self.drop or self.missing == "median" or self.standardize
        if self.images is not None and columns_alone:
            raise ValueError(
                "of a folder of pictures the inputs are the pictures: leave out features, drop, median and "
                "standardize (`train: {normalize: ...}` of a paper standardizes pictures)"
            )
        named = [*self.columns, *self.drop, *(self.features or ())]
        if twice := [name for name in named if named.count(name) > 1]:
            raise ValueError(
                f"the column {twice[0]} is named twice: each is label, group, site, split, path or a feature"
            )
        return self

    @property
    def is_table(self) -> bool:
        """Whether the file is a table and not an archive of arrays."""
        return self.file is not None and self.file.suffix in TABLES

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that are not features."""
        place = None if self.images is None else self.path
        return tuple(
            name for name in (self.label, self.group, self.site, self.split, place) if name is not None
        )
