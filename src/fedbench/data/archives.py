"""Unpack what is wanted from an archive, and nothing else.

The names inside an archive never become paths: each wanted member is copied to a path that the caller chose,
and only if it is a regular file. So a hostile archive cannot write elsewhere, through links, ``..`` or
absolute names.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from fedbench.errors import UserError
from fedbench.files import atomic


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Copy members of a ``.zip``, ``.tar``, ``.tar.gz``/``.tgz`` or ``.gz`` file to the given paths.

    Args:
        archive: the file to unpack.
        members: name inside the archive -> path to write. A ``.gz`` file has one member, whatever its name.

    Raises:
        UserError: the archive is corrupt or lacks a member as a regular file.
    """
    missing = dict(members)
    try:
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                for item in tar:
                    name = item.name.removeprefix("./")
                    content = tar.extractfile(item) if name in missing and item.isreg() else None
                    if content is not None:
                        _copy(content, missing.pop(name))
                    if not missing:
                        break
        elif zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                for name in set(missing) & set(zipped.namelist()):
                    with zipped.open(name) as content:
                        _copy(content, missing.pop(name))
        else:
            with gzip.open(archive) as unzipped:
                _copy(unzipped, missing.pop(next(iter(missing))))
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}). Delete it and run again.") from None
    if missing:
        raise UserError(
            f"{archive} lacks {', '.join(sorted(missing))}: it is not the file that is expected here."
        )


def _copy(source: IO[bytes] | gzip.GzipFile, target: Path) -> None:
    with atomic(target) as temporary, temporary.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
