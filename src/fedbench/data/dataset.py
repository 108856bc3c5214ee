"""What a dataset is: facts, the raw files it needs, and how they become arrays."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import PositiveInt

from fedbench.data.download import Download, available, obtain
from fedbench.data.picture import Form
from fedbench.errors import UserError

if TYPE_CHECKING:
    from fedbench.data.custom.encoding import Reading

IMPUTED = "empty cells became the training part's median"
"""How the note begins that lists imputed columns with their numbers of cells."""
SPLIT = "parts by column"
"""How the note begins that names the column of a split, and how many rows only `validation: own` uses."""


@dataclass(frozen=True)
class Arrays:
    """A dataset in memory.

    Attributes:
        x_train: ``[n, C, H, W]`` uint8 (0..255) or float32, or features ``[n, F]`` float32; ``x_test`` alike.
        y_train: ``[n]`` int64 original class of each sample, an index into the dataset's ``classes``;
            ``y_test`` alike.
        group_train: ``[n]`` int64 patient or site of each training sample, where the dataset knows it.
        site_train: ``[n]`` int64 hospital or the like that owns each training sample, an index into ``sites``;
            ``site_test`` alike.
        held_train: ``[n]`` bool, true for the samples of ``x_train`` that are the dataset's official validation part,
            where it has one.
        classes: names of the classes, where only the files know them.
        sites: names of the sites.
        features: names of the features of a table, without which tables are joined by the places of their columns.
        notes: what was decided while preparing, for the record.
        remarks: what a reader of the numbers should know, for below a table.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    group_train: np.ndarray | None = None
    held_train: np.ndarray | None = None
    site_train: np.ndarray | None = None
    site_test: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """Where a dataset stands: ``state`` is one word or two, ``detail`` says where it is or what to do."""

    state: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Dataset(ABC):
    """One dataset; :mod:`fedbench.data.datasets` has those of the library.

    Attributes:
        name: what configurations and file names call it.
        title: what papers call it.
        classes: the names of the original classes, in the order of their labels; empty until prepared if
            unknown.
        shape: the shape of one sample as it is stored, e.g. ``(3, 32, 32)``; image sets are resized to it.
        licence: the terms of use, in a few words.
        source: where it comes from.
        account: for sets behind an account: what to fetch, from where. Empty for the others.
        raw: the folder of its raw files inside ``<data_dir>/raw``, if that is not ``name``.
        whole_groups: a group is one patient or the like, whose samples never lie in two of the training,
            validation and test parts; unlike a hospital, which each part may have samples from.
        about: what it is, in a line; empty: the first line of its file says it.
        disjoint_classes: each class lies in one group, and each part has classes of its own, as in few-shot learning.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    licence: str
    source: str
    account: str = ""
    raw: str = field(default="")
    whole_groups: bool = field(default=False, repr=False)  # a fact, no option: it changes no array
    about: str = field(default="", repr=False)
    disjoint_classes: bool = field(default=False, repr=False)

    def downloads(self) -> tuple[Download, ...]:
        """Return the raw files it needs; none for data that come with a library or are the user's own."""
        return ()

    @abstractmethod
    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the raw files in ``raw_dir`` into arrays."""

    def count_labels(self, data_dir: Path) -> dict[str, int] | None:
        """Count the samples of each class from label files alone, for sets whose images few have; None: cannot."""
        return None

    def site_names(self) -> tuple[str, ...] | None:
        """Return the names of the sites that own its samples, sorted, before it is prepared; None: not known yet."""
        return None

    def count_sites(self) -> int:
        """Return how many sites have training samples."""
        return len(self.site_names() or ())

    def facts(self) -> tuple[tuple[int, ...], int]:
        """Return the shape of a sample and the number of classes, empty and 0 where it has to be prepared first."""
        return self.shape, len(self.classes)

    def rows(self) -> dict[str, np.ndarray] | None:
        """Return which rows of a user's file its samples are, by part (train, test); None where they have none."""
        return None

    def groups(self) -> dict[int, str]:
        """Return what a user's file calls the group of each row, such as the patient; none where it does not say."""
        return {}

    def reading(self) -> Reading | None:
        """Return how a model on it reads a file of further samples; None where it cannot."""
        return None

    @property
    def of_pictures(self) -> bool:
        """Whether it is made of picture files, which several processes decode."""
        return False

    def raw_dir(self, data_dir: Path) -> Path:
        """Return the folder of this dataset's raw files."""
        return data_dir / "raw" / (self.raw or self.name)

    def definition(self) -> str:
        """Return a text that changes whenever preparing would give something else."""
        return repr(self)

    def content(self) -> str:
        """Return a text that changes whenever the arrays do; title, licence and source do not matter."""
        return repr(dataclasses.replace(self, title="", licence="", source=""))

    def sources(self, folder: Path) -> list[Path]:
        """List the raw files whose checksums belong into the record; most lie in ``folder``."""
        return [folder / path for item in self.downloads() for path in item.files]

    def present(self, folder: Path) -> bool:
        """Say whether the raw files lie in ``folder`` (their checksums are verified when they are used)."""
        return all(path.is_file() for path in self.sources(folder))

    def fetch(self, data_dir: Path, mirror: str | None) -> Path:
        """Get the raw files, from the mirror first, and return the folder they lie in.

        Raises:
            UserError: they cannot be obtained; the message says what to do.
        """
        folder, label = self.raw_dir(data_dir), self.raw or self.name
        if (place := self.in_place(folder, mirror)) is not None:
            return place
        for item in self.downloads():
            obtain(item, folder, mirror, dataset=label, cure=self.cure(folder))
        return folder

    def in_place(self, folder: Path, mirror: str | None) -> Path | None:
        """Return where raw files lie that are used there: large, without checksums."""
        places = [folder, *([Path(mirror).expanduser() / (self.raw or self.name)] if mirror else [])]
        return next((place for place in places if self.present(place)), None) if self.account else None

    def cure(self, folder: Path) -> str:
        """Say what a user does when the raw files cannot be had."""
        if self.account:
            return f"{self.account} Put it into {folder}, or into a mirror: --config mirror=FOLDER_OR_URL."
        return f"Put it into {folder}, or name a copy: --config mirror=FOLDER_OR_URL."

    def status(self, data_dir: Path, mirror: str | None = None) -> Status:
        """Say where this dataset stands, without touching the network."""
        prepared = data_dir / "prepared" / f"{self.name}.json"
        if prepared.is_file():
            return Status("prepared", str(prepared.with_suffix("")))
        folder = self.raw_dir(data_dir)
        try:
            items = self.downloads()
            if self.present(folder):
                return Status("raw present", str(folder) if items else self.source)
            known = [available(item, mirror, self.raw or self.name) for item in items]
            if self.in_place(folder, mirror) is not None or all(known):
                return Status("in mirror", str(mirror))
        except UserError as error:
            return Status("unavailable", str(error))
        if self.account:
            return Status("needs account", self.cure(folder))
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        return Status("downloadable", items[0].urls[0] + more)


@dataclass(frozen=True, kw_only=True)
class PictureSet(Dataset):
    """One made of picture files, decoded and resized to ``shape``.

    Attributes:
        draft: decode large JPEGs at a part of their size (:class:`fedbench.data.picture.Form`): other arrays, in a
            fraction of the time.
    """

    shape: tuple[Literal[1, 3], PositiveInt, PositiveInt]
    draft: bool = False

    @property
    def form(self) -> Form:
        """What each picture becomes."""
        channels, height, width = self.shape
        return Form((height, width), grey=channels == 1, draft=self.draft)

    @property
    def resized(self) -> str:
        """Height and width, for notes."""
        return f"{self.shape[1]}x{self.shape[2]}"

    @property
    def of_pictures(self) -> bool:
        return True
