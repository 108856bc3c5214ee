"""Files of data: byte-equal archives of arrays, JSON, checksums. All are whole or absent."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbench.errors import UserError
from fedbench.files import atomic

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can carry: the same bytes on every day

_BROKEN = (
    *(OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error),
    TypeError,  # a single array under the name of an archive
)


def checksum(path: Path, kind: str = "sha256") -> str:
    """Return the hexadecimal digest of a file (``kind``: any name of :mod:`hashlib`)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as an uncompressed ``.npz``, atomically, with bytes that depend on the arrays alone."""
    with atomic(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.create_system = 3  # or the bytes would name the operating system
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def read_npz(path: Path, cure: str, only: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz``, each checked by its CRC; with ``only``, no others than these.

    Raises:
        UserError: the file is missing, truncated or corrupt; the message names it and ends with ``cure``.
    """
    if not path.is_file():
        raise UserError(f"{path} is missing. {cure}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if only is None or name in only}
    except _BROKEN as error:
        raise UserError(f"{path} is truncated or corrupt ({error}). Delete it. {cure}") from None


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON, atomically."""
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path, cure: str) -> dict[str, Any]:
    """Read a JSON object; a missing or broken file is a :class:`UserError`, as in :func:`read_npz`."""
    if not path.is_file():
        raise UserError(f"{path} is missing. {cure}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is truncated or corrupt ({error}). Delete it. {cure}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} does not hold a JSON object. Delete it. {cure}")
    return value
