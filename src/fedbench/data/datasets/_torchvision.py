"""MNIST, CIFAR, STL10: sets that torchvision knows: its addresses, checksums and readers, our mirror and downloader.

torchvision is imported only to fetch and prepare; training from prepared arrays does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download
from fedbench.errors import installed


def torchvision_class(name: str) -> Any:
    """Return ``torchvision.datasets.<name>``, or say how to install it."""
    with installed("vision", f"reading {name} needs torchvision"):
        from torchvision import datasets
    return getattr(datasets, name)


@dataclass(frozen=True, kw_only=True)
class TorchvisionSet(Dataset):
    """A set that torchvision reads once its files are there.

    Attributes:
        known_as: torchvision's name of it, in the folders of its files too; the title is free to change.
    """

    known_as: str = field(repr=False)

    def prepare(self, raw_dir: Path) -> Arrays:
        known, (channels, height, width) = torchvision_class(self.known_as), self.shape
        # the constructor verifies every checksum again before it unpickles
        train, test = (known(raw_dir, train=part) for part in (True, False))
        x_train, x_test = (
            np.asarray(part.data).reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
            for part in (train, test)
        )
        return Arrays(x_train, np.asarray(train.targets), x_test, np.asarray(test.targets))


@dataclass(frozen=True, kw_only=True)
class IdxSet(TorchvisionSet):
    """MNIST and its relatives: four gzipped IDX files.

    Attributes:
        unpacked: the MD5 of each file without gzip, which torchvision does not list and a mirror may hold.
    """

    unpacked: Mapping[str, str] = field(default_factory=dict)

    def downloads(self) -> tuple[Download, ...]:
        known, items = torchvision_class(self.known_as), []
        for file, md5 in known.resources:
            path = f"{self.known_as}/raw/{file}"
            urls = tuple(f"{address}{file}" for address in known.mirrors)
            name = file.removesuffix(".gz")
            items.append(Download(path, urls, md5, {path.removesuffix(".gz"): self.unpacked.get(name)}))
        return tuple(items)


@dataclass(frozen=True, kw_only=True)
class CifarSet(TorchvisionSet):
    """CIFAR-10 and CIFAR-100, whose fine labels are read: pickles, opened only after their checksum agreed."""

    def downloads(self) -> tuple[Download, ...]:
        known = torchvision_class(self.known_as)
        listed = [*known.train_list, *known.test_list, (known.meta["filename"], known.meta["md5"])]
        files = {f"{known.base_folder}/{name}": md5 for name, md5 in listed}
        return (Download(known.filename, (known.url,), known.tgz_md5, files),)


@dataclass(frozen=True, kw_only=True)
class Stl10(Dataset):
    """The labelled part; the 100 000 unlabelled images stay in the archive."""

    def downloads(self) -> tuple[Download, ...]:
        known = torchvision_class("STL10")
        labelled = [entry for entry in [*known.train_list, *known.test_list] if entry[0] != "unlabeled_X.bin"]
        files = {f"{known.base_folder}/{name}": md5 for name, md5 in labelled}
        return (Download(known.filename, (known.url,), known.tgz_md5, files),)

    def prepare(self, raw_dir: Path) -> Arrays:
        known = torchvision_class("STL10")
        # without the unlabelled images in its list, torchvision's reader does not insist on them
        labelled = type("Labelled", (known,), {"train_list": known.train_list[:2]})
        train, test = (labelled(raw_dir, split=split) for split in ("train", "test"))
        return Arrays(train.data, train.labels.astype(np.int64), test.data, test.labels.astype(np.int64))
