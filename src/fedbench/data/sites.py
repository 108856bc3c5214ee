"""Who owns the samples of a data rule: hospitals that a dataset knows, or several datasets, each one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedbench import registry
from fedbench.data import datasets
from fedbench.data.custom import yaml_dataset
from fedbench.errors import UserError
from fedbench.project import Folder


def site_names(names: Sequence[str], folder: Path | Folder = yaml_dataset.FOLDER) -> tuple[str, ...] | None:
    """Return the sites of one dataset's samples, or of several datasets that are joined, in the order of their numbers.

    None where they are not known before the dataset is prepared, none where its samples have no sites.

    Raises:
        UserError: the dataset's file cannot be read.
    """
    if len(names) > 1:
        return tuple(names)
    dataset = datasets.get(names[0], folder)
    names_of_sites = dataset.site_names()
    return () if names_of_sites is None and names[0] not in registry.origins(datasets) else names_of_sites


def count(names: Sequence[str], folder: Path | Folder = yaml_dataset.FOLDER) -> int:
    """Return how many sites have training samples, for ``clients: sites``.

    Raises:
        UserError: the samples have no sites, or these are not known yet.
    """
    names_of_sites = site_names(names, folder)
    if not names_of_sites:
        raise UserError(
            f"data.clients is sites, but {names[0]!r} does not say who owns its samples: name the column with `site:` "
            "in its YAML, or give a number"
        )
    if len(names) == 1 and isinstance(dataset := datasets.get(names[0], folder), yaml_dataset.OwnDataset):
        return dataset.count_sites()
    return len(names_of_sites)
