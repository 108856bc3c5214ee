"""What a YAML file under ``config/datasets`` may say of one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedbench.data.own_labels import Word
from fedbench.specs import Spec

TABLES = (".csv", ".tsv")


def _listed(value: Any) -> Any:
    """Take one for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


class OwnSpec(Spec):
    """The keys of such a YAML file; ``late`` are those that an older file cannot have."""

    late: ClassVar[tuple[str, ...]] = (
        "site", "positive", "classes", "features", "drop", "missing", "images", "path", "size", "grey",
    )  # fmt: skip

    file: Path | None = None
    label: str | None = None
    group: str | None = None
    site: str | None = Field(None, repr=False)  # `definition` speaks of what is not in the repr
    positive: Annotated[tuple[Word, ...], BeforeValidator(_listed)] = Field((), repr=False)
    classes: dict[Word, str] | None = Field(None, repr=False, min_length=1)
    features: tuple[str, ...] | None = Field(None, repr=False, min_length=1)
    drop: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field((), repr=False)
    missing: Literal["error", "drop", "median"] = Field("error", repr=False)
    images: Path | None = Field(None, repr=False)
    path: str = Field("path", repr=False)
    size: tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=4096)]] = Field(
        (64, 64), repr=False
    )
    grey: bool = Field(False, repr=False)
    whole_groups: bool = Field(False, repr=False)  # see OwnDataset._data
    format: Literal["plain", "keras", "medmnist"] | None = Field(None, repr=False)
    layout: Literal["NCHW", "NHWC"] | None = None
    test_share: float = Field(0.2, gt=0, lt=1)
    standardize: bool = False
    title: str | None = None
    licence: str = "not stated"
    source: str | None = None
    base: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.file is None) == (self.base is None):
            raise ValueError("give either file (an .npz or .csv) or base (a dataset to change)")
        if self.options and self.base is None:
            raise ValueError("options go with base")
        if self.file is not None and self.file.suffix not in (".npz", *TABLES):
            cure = "; save the spreadsheet as CSV" if self.file.suffix.startswith(".xls") else ""
            raise ValueError(f"file must end with .npz or .csv{cure}")
        if self.file is not None and self.is_table != (self.label is not None):
            raise ValueError("label names the column of classes of a .csv file, and only there")
        if self.format is not None and (self.file is None or self.file.suffix != ".npz"):
            raise ValueError("format goes with an .npz file")
        if self.whole_groups and self.file is None:
            raise ValueError("whole_groups goes with file; a base keeps its own")
        if self.whole_groups and self.label is not None and self.group is None:
            raise ValueError("whole_groups needs group, the column of groups")
        if self.site is not None and (self.label is None or self.site in (self.label, self.group)):
            raise ValueError("site names a column of a .csv file that is neither label nor group")
        said = [name for name in self.late if getattr(self, name) != type(self).model_fields[name].default]
        if said and self.file is None:
            raise ValueError(f"{said[0]} goes with file")
        for name in ("features", "drop", "missing", "images"):
            if name in said and not self.is_table:
                raise ValueError(f"{name} goes with a .csv file")
        for name in ("path", "size", "grey"):
            if name in said and self.images is None:
                raise ValueError(f"{name} goes with images, the folder of pictures that a .csv file lists")
        if self.images is not None and ({"features", "drop"} & {*said} or self.missing == "median"):
            raise ValueError(
                "of a folder of pictures the inputs are the pictures: leave out features, drop and median"
            )
        if self.features is not None and self.drop:
            raise ValueError("give features, the columns to take, or drop, those to leave out; not both")
        named = {*self.columns}
        if twice := [name for name in (*self.drop, *(self.features or ())) if name in named]:
            raise ValueError(f"{twice[0]} is label, group or site: it is no feature, and needs no drop")
        return self

    @property
    def is_table(self) -> bool:
        """Whether the file is a table and not an archive of arrays."""
        return self.file is not None and self.file.suffix in TABLES

    @property
    def columns(self) -> list[str]:
        """The columns of a table that are no features."""
        place = None if self.images is None else self.path
        return [name for name in (self.label, self.group, self.site, place) if name is not None]

    @property
    def chosen(self) -> tuple[str, ...] | None:
        """The columns of a table that are features, none where pictures are; None: all others."""
        return self.features if self.images is None else ()

    @property
    def keeps_groups(self) -> bool:
        """Whether no group has samples in two of the parts: where a site is named, groups are its patients."""
        return self.whole_groups or (self.site is not None and self.group is not None)
