"""Get raw files: what lies there already, then the mirror, then the official address.

Downloads go to ``<file>.part``, are resumed and retried, and take their name only when complete and their
checksum agrees. A file with a wrong checksum is moved to ``<file>.corrupt`` and never used.
"""

from __future__ import annotations

import gzip
import logging
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tqdm import tqdm

from fedbench.data.files import checksum
from fedbench.errors import UserError, WriteError, cannot_write, is_write_error
from fedbench.files import atomic

log = logging.getLogger(__name__)

ATTEMPTS = 4
_TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 16  # what dies with the process is no more than this


@dataclass(frozen=True)
class RawFile:
    """A file to have, by its path inside the dataset's raw folder, and its MD5 where one is published."""

    path: str
    md5: str | None = None


@dataclass(frozen=True)
class Download:
    """A file as it is published.

    Attributes:
        path: where it is kept inside the dataset's raw folder, which is also its place in a mirror.
        urls: official addresses, in order of preference; none for files behind an account.
        md5: its published checksum.
        unpacks: the files it is wanted for, by their names inside it; a mirror may hold these instead.
            Empty: the file itself is wanted.
    """

    path: str
    urls: tuple[str, ...] = ()
    md5: str | None = None
    unpacks: tuple[RawFile, ...] = ()

    @property
    def files(self) -> tuple[RawFile, ...]:
        """The files that must lie in the raw folder in the end."""
        return self.unpacks or (RawFile(self.path, self.md5),)


def obtain(item: Download, folder: Path, mirror: str | None, *, dataset: str, cure: str) -> None:
    """Make sure that the files of ``item`` lie in ``folder`` with the right checksums.

    A mirror (a folder or an address) holds them at the same paths as ``folder``, with or without a folder
    named after the dataset around them, unpacked or as published.

    Raises:
        UserError: no source has the file; the message lists what was tried and ends with ``cure``.
    """
    missing = [file for file in item.files if not usable(folder / file.path, file.md5)]
    if not missing:
        return
    tried: list[str] = []
    bases = _bases(mirror, dataset, item)
    for base in bases:
        if all(_get(_join(base, file.path), folder / file.path, file.md5, tried) for file in missing):
            return
    target = folder / item.path
    sources = [*(_join(base, item.path) for base in bases if item.unpacks), *item.urls]
    present = item.unpacks and usable(target, item.md5)
    if not present and not any(_get(source, target, item.md5, tried) for source in sources):
        reasons = "; ".join(tried) or "it has no public address"
        raise UserError(f"dataset {dataset!r} needs {target}, which could not be obtained: {reasons}. {cure}")
    if item.unpacks:
        unpack(target, {file.path: folder / file.path for file in missing})
        for file in missing:
            if not usable(folder / file.path, file.md5):
                raise UserError(
                    f"{target} holds a {file.path} with a wrong checksum: delete it and run again."
                )


def available(item: Download, mirror: str | None, dataset: str) -> bool:
    """Say whether a mirror folder holds ``item``, unpacked or as published. Addresses are not asked."""
    bases = [base for base in _bases(mirror, dataset, item) if isinstance(base, Path)]
    return any(
        all((base / file.path).is_file() for file in item.files) or (base / item.path).is_file()
        for base in bases
    )


def usable(path: Path, md5: str | None) -> bool:
    """Say whether ``path`` exists with this checksum; a corrupt file is named in the log and moved aside."""
    if not path.is_file():
        return False
    actual = checksum(path, "md5") if md5 else None
    if actual == md5:
        return True
    aside = _aside(path)
    path.replace(aside)
    log.warning("%s is corrupt (md5 %s, expected %s): moved to %s", path, actual, md5, aside)
    return False


def _aside(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".part") + ".corrupt")


def download(
    url: str,
    target: Path,
    md5: str | None = None,
    attempts: int = ATTEMPTS,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Download ``url`` to ``target``: resumed from ``<target>.part``, retried with growing pauses, verified.

    Raises:
        UserError: the address does not give the file, or gives one with another checksum (kept as
            ``.corrupt``).
        WriteError: the disk is full or not writable; what was fetched so far is kept.
    """
    part = _part(target)
    problem = ""
    for attempt in range(attempts):
        if attempt:
            log.warning("%s: %s; trying again", url, problem)
            pause(2.0 ** (attempt - 1))
        try:
            resumed = _transfer(url, part)
        except HTTPError as error:
            problem = f"HTTP {error.code} {error.reason}"
            if error.code == 416:  # what was kept is not the beginning of this file
                part.unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                break
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and is_write_error(error):
                raise cannot_write(part, error) from None
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        else:
            if usable(part, md5):
                part.replace(target)
                return
            problem = f"wrong checksum, kept as {_aside(part)}"
            if not resumed:  # a fresh copy that is wrong will be wrong again
                break
    raise UserError(f"{url}: {problem}")


def _transfer(url: str, part: Path) -> bool:
    """Fetch what ``part`` lacks; say whether it continued an earlier beginning."""
    start = part.stat().st_size if part.is_file() else 0
    request = Request(
        url, headers={"User-Agent": "fedbench", **({"Range": f"bytes={start}-"} if start else {})}
    )
    with urlopen(request, timeout=_TIMEOUT) as response:
        resumed = start > 0 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        length = response.headers.get("Content-Length")
        expected = int(length) + (start if resumed else 0) if length is not None else None
        bar = tqdm.wrapattr(
            response, "read", total=expected, initial=start if resumed else 0, desc=part.stem, disable=None
        )
        with bar as stream, part.open("ab" if resumed else "wb") as file:
            shutil.copyfileobj(stream, file, _CHUNK)
    if expected is not None and part.stat().st_size != expected:
        raise OSError(f"connection lost after {part.stat().st_size} of {expected} bytes")
    return resumed


def _get(source: Path | str, target: Path, md5: str | None, tried: list[str]) -> bool:
    """Copy or download one file; a failure is noted in ``tried``."""
    try:
        if isinstance(source, str):
            log.info("downloading %s", source)
            download(source, target, md5)
        else:
            _copy(source, target, md5)
    except WriteError:
        raise  # no other source would help
    except UserError as error:
        tried.append(str(error))
        return False
    return True


def _copy(source: Path, target: Path, md5: str | None) -> None:
    if not source.is_file():
        raise UserError(f"{source}: no such file")
    part = _part(target)
    try:
        content = source.open("rb")
    except OSError as error:
        raise UserError(f"{source}: {error.strerror}") from None
    try:
        with content, part.open("wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
    except OSError as error:
        raise cannot_write(part, error) from None
    if not usable(part, md5):
        raise UserError(f"{source}: wrong checksum, the copy is kept as {_aside(part)}")
    part.replace(target)


def _part(target: Path) -> Path:
    """Return where a file lies until it is whole, and make the folder for it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(target, error) from None
    return target.with_name(target.name + ".part")


def _bases(mirror: str | None, dataset: str, item: Download) -> Sequence[Path | str]:
    """List where a mirror may hold a file; one without a checksum only in a folder named like its dataset."""
    if not mirror:
        return ()
    root: Path | str = mirror.rstrip("/")
    if not mirror.startswith(("http://", "https://")):
        root = Path(mirror).expanduser()
        if not root.is_dir():
            raise UserError(f"mirror: {root} is neither a folder nor an http(s) address.")
    return (root, _join(root, dataset)) if item.md5 else (_join(root, dataset),)


def _join(base: Path | str, path: str) -> Path | str:
    return base / path if isinstance(base, Path) else f"{base}/{quote(path)}"


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Copy members of a ``.zip``, ``.tar``, ``.tar.gz``/``.tgz`` or ``.gz`` file to the given paths.

    The names inside an archive never become paths: a wanted member is copied to the path that the caller chose, if it
    is a regular file. So a hostile archive cannot write elsewhere, through links, ``..`` or absolute names.

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
                        _write(content, missing.pop(name))
                    if not missing:
                        break
        elif zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                for name in set(missing) & set(zipped.namelist()):
                    with zipped.open(name) as content:
                        _write(content, missing.pop(name))
        else:
            with gzip.open(archive) as unzipped:
                _write(unzipped, missing.pop(next(iter(missing))))
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}). Delete it and run again.") from None
    if missing:
        raise UserError(
            f"{archive} lacks {', '.join(sorted(missing))}: it is not the file that is expected here."
        )


def _write(source: IO[bytes] | gzip.GzipFile, target: Path) -> None:
    with atomic(target) as temporary, temporary.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
