"""Sets that torchvision knows: its addresses, checksums and readers, behind our mirror and downloader.

torchvision is imported only to fetch and prepare; training from prepared arrays does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download, RawFile
from fedbench.errors import UserError


def torchvision_class(name: str) -> Any:
    """Return ``torchvision.datasets.<name>``, or say how to install it."""
    try:
        from torchvision import datasets
    except ImportError as error:
        raise UserError(
            f"reading {name} needs torchvision: pip install 'fedbench-suite[vision]' ({error})."
        ) from None
    return getattr(datasets, name)


@dataclass(frozen=True, kw_only=True)
class IdxSet(Dataset):
    """MNIST and its relatives: four gzipped IDX files.

    Attributes:
        known_as: torchvision's name of it, in the folders of its files too; the title is free to change.
        unpacked: the MD5 of each file without gzip, which torchvision does not list and a mirror may hold.
    """

    known_as: str = field(repr=False)
    unpacked: Mapping[str, str] = field(default_factory=dict)

    def downloads(self) -> tuple[Download, ...]:
        """One gzip file each for images and labels, train and test."""
        known = torchvision_class(self.known_as)
        folder = f"{self.known_as}/raw"
        items = []
        for file, md5 in known.resources:
            name = file.removesuffix(".gz")
            urls = tuple(f"{address}{file}" for address in known.mirrors)
            items.append(
                Download(
                    f"{folder}/{file}", urls, md5, (RawFile(f"{folder}/{name}", self.unpacked.get(name)),)
                )
            )
        return tuple(items)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the IDX files: grey images as ``[n, 1, 28, 28]`` uint8."""
        known = torchvision_class(self.known_as)
        train, test = (known(raw_dir, train=part) for part in (True, False))
        return Arrays(
            x_train=train.data.numpy()[:, None],
            y_train=train.targets.numpy(),
            x_test=test.data.numpy()[:, None],
            y_test=test.targets.numpy(),
        )


@dataclass(frozen=True, kw_only=True)
class CifarSet(Dataset):
    """CIFAR-10 and CIFAR-100: pickles, which are opened only after their checksum agreed.

    Attributes:
        known_as: torchvision's name of it; the title is free to change.
    """

    known_as: str = field(repr=False)

    def downloads(self) -> tuple[Download, ...]:
        """One archive with a pickle for each batch."""
        known = torchvision_class(self.known_as)
        listed = [*known.train_list, *known.test_list, (known.meta["filename"], known.meta["md5"])]
        files = tuple(RawFile(f"{known.base_folder}/{name}", md5) for name, md5 in listed)
        return (Download(known.filename, (known.url,), known.tgz_md5, files),)

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read the batches: ``[n, 3, 32, 32]`` uint8; the fine labels of CIFAR-100."""
        known = torchvision_class(self.known_as)
        # the constructor verifies every checksum again before it unpickles
        train, test = (known(raw_dir, train=part) for part in (True, False))
        return Arrays(
            x_train=train.data.transpose(0, 3, 1, 2),
            y_train=np.asarray(train.targets),
            x_test=test.data.transpose(0, 3, 1, 2),
            y_test=np.asarray(test.targets),
        )
