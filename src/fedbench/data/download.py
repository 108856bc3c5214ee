"""Get raw files: what lies there already, then the mirror, then the official address.

Downloads are pooch's: a file takes its name when it is complete and its checksum agrees. One with a wrong checksum is
never used.
"""

from __future__ import annotations

import functools
import gzip
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from urllib.request import urlopen

from fedbench.data.files import checksum
from fedbench.errors import UserError, cannot_write, is_write_error, shortened
from fedbench.files import atomic

LOCAL = "file://"
"""How the address of a file in a folder begins."""
RETRIES = 3
"""How often the last address is tried again."""
READABLE = 0o644
"""Raw files are for all who share the folder; pooch leaves them to their owner."""


@dataclass(frozen=True)
class Download:
    """A file as it is published.

    Attributes:
        path: where it is kept inside the dataset's raw folder, which is also its place in a mirror.
        urls: official addresses, in order of preference; none for files behind an account.
        md5: its published checksum.
        unpacks: the files it is wanted for, by their names inside it, and the MD5 of each where one is published; a
            mirror may hold these instead. Empty: the file itself is wanted.
    """

    path: str
    urls: tuple[str, ...] = ()
    md5: str | None = None
    unpacks: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, str | None]:
        """The files that must lie in the raw folder in the end, and their checksums."""
        return self.unpacks or {self.path: self.md5}


def obtain(item: Download, folder: Path, mirror: str | None, *, dataset: str, cure: str) -> None:
    """Make sure that the files of ``item`` lie in ``folder`` with the right checksums.

    A mirror (a folder or an address) holds them at the same paths as ``folder``, with or without a folder
    named after the dataset around them, unpacked or as published.

    Raises:
        UserError: no source has the file; the message lists what was tried and ends with ``cure``.
    """
    missing = {path: md5 for path, md5 in item.files.items() if not usable(folder / path, md5)}
    if not missing:
        return
    tried: list[str] = []
    bases = _bases(mirror, dataset, item)
    for base in bases:
        if all(fetch(f"{base}/{quote(path)}", folder / path, md5, tried) for path, md5 in missing.items()):
            return
    target = folder / item.path
    sources = [*(f"{base}/{quote(item.path)}" for base in bases if item.unpacks), *item.urls]
    present = item.unpacks and usable(target, item.md5)
    if not present and not any(
        fetch(source, target, item.md5, tried, RETRIES * (source == sources[-1])) for source in sources
    ):
        reasons = "; ".join(tried) or "it has no public address"
        raise UserError(f"dataset {dataset!r} needs {target}, which could not be obtained: {reasons}. {cure}")
    if item.unpacks:
        unpack(target, {path: folder / path for path in missing})
        for path, md5 in missing.items():
            if not usable(folder / path, md5):
                raise UserError(f"{target} holds a {path} with a wrong checksum: delete it and run again.")


def available(item: Download, mirror: str | None, dataset: str) -> bool:
    """Say whether a mirror folder holds ``item``, unpacked or as published. Addresses are not asked."""
    bases = [base for base in _bases(mirror, dataset, item) if base.startswith(LOCAL)]
    folders = [Path(unquote(base.removeprefix(LOCAL))) for base in bases]
    return any(
        all((folder / path).is_file() for path in item.files) or (folder / item.path).is_file()
        for folder in folders
    )


def usable(path: Path, md5: str | None) -> bool:
    """Say whether ``path`` is a file with this checksum, or with any where none is known."""
    return path.is_file() and (not md5 or checksum(path, "md5") == md5)


def fetch(source: str, target: Path, md5: str | None, tried: list[str], retries: int = 0) -> bool:
    """Fetch a file from an address or a folder, whole and with its checksum or not at all; say whether it is there.

    An address of the web is tried again ``retries`` times. What went wrong is added to ``tried``.

    Raises:
        WriteError: the disk is full or not writable; no other source would help.
    """
    import pooch  # when it is needed: a tenth of the time in which commands start

    local, name = source.startswith(LOCAL), target.name
    files = pooch.Pooch(
        target.parent, "", {name: f"md5:{md5}" if md5 else None}, {name: source},
        retry_if_failed=0 if local else retries,
    )  # fmt: skip
    try:
        files.fetch(name, downloader=_copy if local else pooch.HTTPDownloader(sys.stderr.isatty()))
        target.chmod(READABLE)
    except (OSError, ValueError) as error:  # those of requests are OSErrors
        if isinstance(error, OSError) and is_write_error(error):
            raise cannot_write(target, error) from None
        tried.append(f"{source}: {shortened(str(error))}")
        return False
    return True


def _copy(source: str, output: str, _: object) -> None:
    """Copy a file of a folder, as pooch asks for a download."""
    with urlopen(source) as content, Path(output).open("wb") as file:
        shutil.copyfileobj(content, file)


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

    The names inside an archive never become paths: a wanted member is copied to the path that ``members`` gives its
    name, if it is a regular file. So a hostile archive cannot write elsewhere, through links, ``..`` or absolute names.
    A ``.gz`` file has one member, whatever its name.

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
