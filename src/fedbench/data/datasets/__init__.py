"""Datasets: those of the library are listed in ``catalog.yaml``; MedMNIST's are known by name and size.

A file without an underscore defines ``dataset``, a :class:`fedbench.data.dataset.Dataset`. A separate package adds one
through an entry point of the group ``fedbench.data.datasets``; arrays in a file of your own become one through
``config/datasets/<name>.yaml``, without code (:mod:`fedbench.data.custom.yaml_dataset`).
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fedbench import registry
from fedbench.data.custom import yaml_dataset
from fedbench.data.dataset import Dataset
from fedbench.data.datasets import _medmnist as medmnist
from fedbench.errors import UserError, unknown
from fedbench.safe_yaml import read_yaml
from fedbench.spec import digest, named

_HERE = sys.modules[__name__]


@functools.cache
def _catalog() -> dict[str, dict[str, Any]]:
    catalog: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("catalog.yaml"))
    return catalog


def names(described: bool = True) -> list[str]:
    """List the datasets: those of the library, of other packages, and those that YAML files describe.

    The sets of MedMNIST are listed in their smallest size.
    """
    files = yaml_dataset.FOLDER.glob("*.yaml") if described else ()
    return sorted({*registry.names(_HERE), *_catalog(), *medmnist.SETS, *(path.stem for path in files)})


def content(name: str) -> str | None:
    """Return a digest of the dataset that a YAML file describes and of the data it points at.

    None for the datasets that are code: theirs is the version of the numerics.

    Raises:
        UserError: the YAML file has a mistake, or what it points at is not there.
    """
    known = any(path.stem == name for path in yaml_dataset.FOLDER.glob("*.yaml"))
    return digest(get(name).content()) if known else None


def site_names(of: Sequence[str]) -> tuple[str, ...] | None:
    """Return the sites of a dataset's samples, or of several datasets that are joined, in the order of their numbers.

    None where they are not known before the dataset is prepared, none where its samples have no sites.

    Raises:
        UserError: the dataset's file cannot be read.
    """
    if len(of) > 1:
        return tuple(of)
    sites = get(of[0]).site_names()
    return () if sites is None and of[0] not in registry.origins(_HERE) else sites


def count_sites(of: Sequence[str]) -> int:
    """Return how many sites have training samples, for ``clients: sites``.

    Raises:
        UserError: the samples have no sites, or these are not known yet.
    """
    if not site_names(of):
        raise UserError(
            f"data.clients is sites, but {of[0]!r} does not say who owns its samples: name the column with `site:` "
            "in its YAML, or give a number"
        )
    return len(of) if len(of) > 1 else get(of[0]).count_sites()


def get(name: str, _above: tuple[str, ...] = ()) -> Dataset:
    """Return the dataset called ``name``; ``_above`` are those that are based on it.

    Raises:
        UserError: the name is unknown, or its YAML file has a mistake.
    """
    try:
        path = yaml_dataset.FOLDER / f"{named(name)}.yaml"
    except ValueError as error:
        raise UserError(f"dataset {error}") from None
    coded = _coded(name)
    if not path.is_file():
        if coded is None:
            raise unknown("dataset", name, names())
        return coded
    if coded is not None:
        raise UserError(f"{path}: {name!r} is the name of a dataset that exists; rename the file.")
    if name in _above:
        chain = " -> ".join([*_above, name])
        raise UserError(f"{path}: base: {chain} leads in a circle; name a dataset that has other data")
    return yaml_dataset.load_dataset(path, lambda base: get(base, (*_above, name)))


@functools.cache
def _listed(name: str) -> Dataset:
    """Make a dataset of the catalog; its file is imported when it is asked for."""
    facts = _catalog()[name]
    given = {"name": name, **_catalog().get(facts.get("base", ""), {}), **facts}
    file, kind = given["class"].split(".")
    kind = getattr(importlib.import_module(f"{__name__}.{file}"), kind)
    made: Dataset = TypeAdapter(kind).validate_python(given)
    return made


def _coded(name: str) -> Dataset | None:
    """Return a dataset that is code: of the catalog, of MedMNIST, of a file, or of another package."""
    if name in _catalog():
        return _listed(name)
    if (in_family := medmnist.named(name)) is not None:
        return in_family
    if name not in registry.names(_HERE):
        return None
    dataset = registry.find(_HERE, "dataset", name, "dataset")
    if not isinstance(dataset, Dataset):
        raise UserError(f"dataset {name!r}: {dataset!r} is not a fedbench.data.dataset.Dataset")
    if dataset.name != name:
        raise UserError(f"dataset {name!r} calls itself {dataset.name!r}; its name is that of its file")
    for fact in ("shape", "classes"):
        if not isinstance(given := getattr(dataset, fact), tuple):
            raise UserError(f"dataset {name!r}: {fact} is {given!r}, not a tuple, such as (4,) or ('a', 'b')")
    return dataset
