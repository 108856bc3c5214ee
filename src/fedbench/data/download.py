"""Get raw files: what lies there already, then the mirror, then the official address.

Downloads go to ``<file>.part``, are resumed and retried, and take their name only when complete and their
checksum agrees. A file with a wrong checksum is moved to ``<file>.corrupt`` and never used.
"""

from __future__ import annotations

import functools
import gzip
import logging
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from tqdm import tqdm

from fedbench.data.files import checksum
from fedbench.errors import UserError, WriteError, cannot_write, is_write_error
from fedbench.files import atomic

log = logging.getLogger(__name__)

ATTEMPTS = 4
LOCAL = "file://"
"""How the address of a file in a folder begins."""
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
        if all(_get(f"{base}/{quote(file.path)}", folder / file.path, file.md5, tried) for file in missing):
            return
    target = folder / item.path
    sources = [*(f"{base}/{quote(item.path)}" for base in bases if item.unpacks), *item.urls]
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
    bases = [base for base in _bases(mirror, dataset, item) if base.startswith(LOCAL)]
    folders = [Path(unquote(base.removeprefix(LOCAL))) for base in bases]
    return any(
        all((folder / file.path).is_file() for file in item.files) or (folder / item.path).is_file()
        for folder in folders
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


def _get(source: str, target: Path, md5: str | None, tried: list[str]) -> bool:
    """Download one file, from a folder too; a failure is noted in ``tried``."""
    local = source.startswith(LOCAL)
    try:
        if not local:
            log.info("downloading %s", source)
        download(source, target, md5, attempts=1 if local else ATTEMPTS)
    except WriteError:
        raise  # no other source would help
    except UserError as error:
        tried.append(str(error))
        return False
    return True


def _part(target: Path) -> Path:
    """Return where a file lies until it is whole, and make the folder for it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(target, error) from None
    return target.with_name(target.name + ".part")


def _bases(mirror: str | None, dataset: str, item: Download) -> Sequence[str]:
    """List the addresses where a mirror may hold a file.

    One without a checksum is looked for only in the folder named like its dataset.
    """
    if not mirror:
        return ()
    root = mirror.rstrip("/")
    if not mirror.startswith(("http://", "https://")):
        folder = Path(mirror).expanduser().absolute()
        if not folder.is_dir():
            raise UserError(f"mirror: {mirror} is neither a folder nor an http(s) address.")
        root = folder.as_uri()
    within = f"{root}/{quote(dataset)}"
    return (root, within) if item.md5 else (within,)


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
        for name, content in _contents(archive):
            wanted = missing.pop(name or next(iter(missing)), None)
            if wanted is not None:
                with content() as source, atomic(wanted) as temporary, temporary.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
            if not missing:
                return
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}). Delete it and run again.") from None
    raise UserError(
        f"{archive} lacks {', '.join(sorted(missing))}: it is not the file that is expected here."
    )


def _contents(archive: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each regular file in an archive, empty for a ``.gz``, and what opens it."""
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for item in tar:
                if item.isreg():
                    yield item.name.removeprefix("./"), functools.partial(tar.extractfile, item)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                yield name, functools.partial(zipped.open, name)
    else:
        yield "", functools.partial(gzip.open, archive)
