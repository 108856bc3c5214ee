"""Files of data: byte-equal archives of arrays, JSON, checksums. All are whole or absent."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import math
import mmap
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from fedbench import seal
from fedbench.errors import UserError, cannot_read
from fedbench.files import atomic

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BLOCK = 1 << 18
"""Bytes that are written at a time: they stay in the cache between checksum and file."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can carry: the same bytes on every day

_BROKEN = (
    *(ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error),
    # a header that is no header
    *(SyntaxError, tokenize.TokenError, RecursionError, struct.error, OverflowError),
    *(NotImplementedError, RuntimeError),  # an encrypted member, or one packed in an unknown way
    TypeError,  # a single array under the name of an archive
)


def checksum(path: Path, kind: str = "sha256") -> str:
    """Return the hexadecimal digest of a file (``kind``: any name of :mod:`hashlib`)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays as an uncompressed ``.npz``, atomically, with bytes that depend on the arrays alone.

    Returns:
        its SHA-256.
    """
    with new_npz(path, arrays) as sha:
        return sha


@contextlib.contextmanager
def new_npz(path: Path, arrays: Mapping[str, np.ndarray], begun_in: Path | None = None) -> Iterator[str]:
    """Write as :func:`write_npz`, and yield the SHA-256; the archive becomes ``path`` if the block succeeds.

    A file of the folder ``begun_in`` that holds all of the first array where :func:`content_start` says becomes the
    archive: the array is not copied. If anything fails, the file stays, with the array in it.
    """
    begun = None if begun_in is None else _begun(begun_in, *next(iter(arrays.items())))
    filled = range(0) if begun is None else range(begun.offset, begun.offset + begun.nbytes)
    with atomic(path, None if begun is None else Path(str(begun.filename))) as temporary:
        temporary.touch()
        with _Partial(temporary, filled) as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                stored = np.ascontiguousarray(array)
                with _member(archive, name, stored.dtype, stored.shape) as member:
                    content = stored.reshape(-1).view(np.uint8).data
                    for at in range(0, len(content), BLOCK):
                        member.write(content[at : at + BLOCK])
        yield checksum(temporary)


def content_start(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Return the byte of an archive of :func:`write_npz` at which the content of its first array begins."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, _member(archive, name, dtype, shape):
        return stream.tell()


@contextlib.contextmanager
def _member(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype, shape: tuple[int, ...]
) -> Iterator[IO[bytes]]:
    """Begin an array of an archive as :func:`numpy.lib.format.write_array` does; yield what takes its content."""
    info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
    info.create_system = 3  # or the bytes would name the operating system
    info.external_attr = 0o644 << 16
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        yield member


def _begun(folder: Path, name: str, array: np.ndarray) -> np.memmap | None:
    """Return an archive's first array if all of it lies in a file of a folder, where it is in the archive."""
    base: object = array.base
    if not isinstance(array, np.memmap) or not isinstance(base, mmap.mmap):
        return None  # in memory, or a part of another array
    ours = Path(str(array.filename)).parent == folder.resolve()
    return array if ours and array.offset == content_start(name, array.dtype, array.shape) else None


class _Partial(io.BufferedRandom):
    """A file that holds some bytes of what is written to it already: these are passed over."""

    def __init__(self, path: Path, filled: range) -> None:
        super().__init__(io.FileIO(path, "r+"))
        self.filled = filled
        self.truncate(filled.stop)

    def write(self, content: ReadableBuffer, /) -> int:
        size = memoryview(content).nbytes
        if self.tell() not in self.filled:
            return super().write(content)
        self.seek(size, io.SEEK_CUR)
        return size


def read_npz(
    path: Path, cure: str, only: Collection[str] | None = None, delete: str = "Delete it. "
) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz``, each checked by its CRC; with ``only``, no others than these.

    ``delete`` is the advice for a corrupt file: none for one that exists nowhere else.

    Raises:
        UserError: the file is missing, truncated or corrupt; the message names it and ends with ``cure``.
    """
    with _mistakes_named(path, f"{delete}{cure}", cure):
        _bounded(path, only)
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if only is None or name in only}


def map_npz(path: Path, name: str, cure: str) -> np.ndarray:
    """Map one array of an ``.npz`` that :func:`write_npz` wrote into memory: it is read where and when it is used.

    Its CRC is not checked, which would read all of it.

    Raises:
        UserError: as :func:`read_npz`.
    """
    with (
        _mistakes_named(path, f"Delete it. {cure}", cure),
        zipfile.ZipFile(path) as archive,
        path.open("rb") as file,
    ):
        info = archive.getinfo(f"{name}.npy")
        file.seek(info.header_offset + 26)
        lengths = file.read(4)  # of the name and of the extra field in the member's own header
        size = sum(int.from_bytes(lengths[i : i + 2], "little") for i in (0, 2))
        file.seek(info.header_offset + 30 + size)
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if info.compress_type != zipfile.ZIP_STORED or fortran:
            raise ValueError(f"{name} is not stored as it is")
        return np.memmap(path, dtype, "r", offset=file.tell(), shape=shape)


@contextlib.contextmanager
def _mistakes_named(path: Path, mend: str, make: str) -> Iterator[None]:
    """Raise what is wrong with an archive that is read as a UserError: how to ``mend`` it, or to ``make`` it."""
    if not path.is_file():
        raise UserError(f"{path} is missing. {make}")
    try:
        yield
    except MemoryError:
        raise UserError(f"{path} does not fit into the memory that is free") from None
    except (OSError, *_BROKEN) as error:
        # a torn archive can end in a seek before its beginning
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise cannot_read(path, error) from None
        raise UserError(f"{path} is truncated or corrupt ({error}). {mend}") from None


def _bounded(path: Path, only: Collection[str] | None) -> None:
    """Hold the sizes that an archive and its arrays claim against each other before memory is taken for them.

    Raises:
        ValueError: an array and its member differ in size, those in ``only`` (None: all) claim more than this machine's
            memory, or two have one name.
    """
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with zipfile.ZipFile(path) as archive:
        read = [
            info for info in archive.infolist() if only is None or info.filename.removesuffix(".npy") in only
        ]
        if sum(info.file_size for info in read) > room:
            raise ValueError("its arrays are larger than the memory of this machine")
        if len({*archive.namelist()}) < len(archive.namelist()):
            raise ValueError("two of its arrays have the same name")
        for info in archive.infolist():
            with archive.open(info) as member:
                version = np.lib.format.read_magic(member)
                header = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = header(member)
                held = info.file_size - member.tell()
            # texts of no length would be any number of samples
            if dtype.hasobject or (
                math.prod(shape) * max(dtype.itemsize, 1) == held and min(shape, default=0) >= 0
            ):
                continue  # numpy refuses objects
            raise ValueError(f"{info.filename} claims the shape {list(shape)}, which is not what it holds")


def read_json(path: Path, cure: str) -> dict[str, Any]:
    """Read a JSON object and compare it with its checksum.

    Raises:
        UserError: it is missing or not what was written; the message ends with ``cure``.
        ReadError: it cannot be read now.
    """
    try:
        return seal.read(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing. {cure}") from None
    except ValueError as error:
        raise UserError(f"{path} is truncated or corrupt ({error}). Delete it. {cure}") from None
