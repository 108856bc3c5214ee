"""How a file becomes the inputs of a model: kept beside its weights, so that it scores samples that come later."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from fedbench.data.custom import tables
from fedbench.data.custom.class_labels import as_number
from fedbench.data.custom.encoding import Encoding, filled
from fedbench.data.custom.spec import TABLES, OwnSpec
from fedbench.data.decoding import Pictures
from fedbench.data.picture import Form
from fedbench.errors import UserError, shortened

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Samples:
    """Samples of a file.

    Attributes:
        inputs: [n, ...] as they are stored before training.
        columns: of each sample its ``row`` in the file, counted from 0, and what the file has of ``group``, ``site``
            and ``label``, the class as trained on, -1 where it is not known.
    """

    inputs: np.ndarray
    columns: pd.DataFrame


class Reading(Encoding):
    """What is read of a table, and what its cells become.

    Attributes:
        named: the columns of label, group, site and place of a picture, those that the dataset has.
        classes: the class that each label is trained as, -1 for one that is left out.
        n_classes: how many classes are told apart.
        missing: what an empty cell is, as in the dataset's YAML.
        images: the folder of the pictures that the table lists; they are resized to ``size``, ``grey`` or coloured.
    """

    named: dict[Literal["label", "group", "site", "path"], str]
    classes: dict[str, int] = {}
    n_classes: int = 2
    missing: Literal["error", "drop", "median"] = "error"
    images: Path | None = None
    size: tuple[int, int] = (64, 64)
    grey: bool = False

    @classmethod
    def of_dataset(cls, spec: OwnSpec, train: pd.DataFrame, classes: dict[str, int]) -> Self:
        """Return how a dataset is read; ``train`` are the rows of its training part, ``classes`` that of each label."""
        columns = {"label": spec.label, "group": spec.group, "site": spec.site}
        how: dict[str, Any] = {"missing": spec.missing}
        if spec.images is not None:
            columns["path"] = spec.path
            how = {"images": spec.images, "size": spec.size, "grey": spec.grey}
        else:
            how |= dict(Encoding.learned(train, spec.standardize))
        return cls(named={name: column for name, column in columns.items() if column}, classes=classes, **how)

    def read(self, file: Path, images: Path | None = None) -> Samples:
        """Read the samples of a table; columns that training did not see are passed over.

        Args:
            file: as one's own datasets are, but for label, group and site, which it may lack.
            images: the folder of its pictures. Default: that of the dataset.

        Raises:
            UserError: it lacks a column or a picture, or a cell is not what it was in training.
        """
        if file.suffix not in TABLES or not file.is_file():
            raise UserError(f"{file} does not exist, or is no table ({', '.join(TABLES)})")
        table = tables.read_more(file, [*self.named.values()], self.medians, self.words, self.missing)
        for note in table.notes:
            log.warning("%s: %s", file, note)
        if not len(table.rows):
            raise UserError(f"{file} has no row that can be scored")
        columns = {name: table.named[column] for name, column in self.named.items() if column in table.named}
        if "label" in columns:
            columns["label"] = self._classes(file, columns["label"].tolist())
        places = columns.pop("path", None)
        shown = pd.DataFrame({"row": table.rows} | columns)
        if self.images is None:
            return Samples(self._features(file, table.features), shown)
        if places is None:
            raise UserError(f"{file} lacks the column {self.named['path']!r}, the places of its pictures")
        pictures = Pictures(images or self.images, depth=0)
        pictures.check(places.tolist(), file)
        return Samples(pictures.load(places.tolist(), Form(self.size, self.grey, upright=True)), shown)

    def _features(self, file: Path, features: pd.DataFrame) -> np.ndarray:
        for name, known in self.words.items():
            cells = filled(features[name])
            if other := sorted({*cells} - {*known}):
                log.warning(
                    "%s: column %r has %s in %d of %d rows, which training did not see: it counts as %s",
                    file, name, shortened(", ".join(map(repr, other)), 60), cells.isin(other).sum(), len(cells),
                    repr(known[0]) if len(known) == 2 else "none of its words",
                )  # fmt: skip
        return self.of(features).astype(np.float32)

    def _classes(self, file: Path, labels: Sequence[str]) -> np.ndarray:
        known: Mapping[str, int] = {as_number(text): of for text, of in self.classes.items()} | {"": -1}
        for row, text in enumerate(labels):
            if as_number(text) not in known:
                raise UserError(
                    f"{file}, line {row + 2}: the label {shortened(text, 40)!r} is none of training's "
                    f"({shortened(', '.join(self.classes), 60)}); mend it, or empty the cell"
                )
        return np.array([known[as_number(text)] for text in labels])
