"""Folders and zips of pictures, decoded by several processes into a file that goes on after a kill where it was."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fedbench import files
from fedbench.data.files import files_below
from fedbench.data.picture import Form, pixels_of
from fedbench.errors import AGAIN, UserError
from fedbench.files import Mark
from fedbench.spec import digest

_FEW = 256
"""Pictures up to which one process is as fast as several, which have to start."""
_TOGETHER = 32
"""Pictures that a process is given at a time."""
_CORRUPT = OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error
SAVED = 10.0
"""Seconds after which what is decoded is noted as such."""


_workplace: ContextVar[tuple[Path, int] | None] = ContextVar("workplace", default=None)


@contextlib.contextmanager
def workplace(folder: Path, cores: int) -> Iterator[None]:
    """Let all pictures be decoded into files of ``folder`` by so many processes, in this block.

    A dataset's ``prepare`` need not know of it. The caller removes the folder once the arrays are written.
    """
    token = _workplace.set((folder, cores))
    try:
        yield
    finally:
        _workplace.reset(token)


def _decoded(folder: Path, cores: int, path: Path, places: Sequence[str], form: Form) -> np.ndarray:
    if not places:
        return np.empty((0, *form.shape), np.uint8)
    source = _source(path)
    # of a zip the name of the target changes with it
    marks = [files.mark(path / place) for place in places] if path.is_dir() else []
    target = folder / f"{digest([str(source), list(places), repr(form)])}.npy"
    pixels, done = _room(target, (len(places), *form.shape), marks)
    tasks = [(at, places[at : at + _TOGETHER]) for at in range(done, len(places), _TOGETHER)]
    work = functools.partial(_some, source, target, pixels.offset, form)
    saved = time.monotonic()
    quiet = {} if sys.stderr.isatty() else {"delay": 30, "mininterval": 30}  # a log gets a line now and then
    bar = tqdm(total=len(places), initial=done, desc=path.name, unit=" pictures", **quiet)
    cores = min(cores, len(tasks)) if len(places) - done > _FEW else 1
    spawn = multiprocessing.get_context("spawn")  # a fork of a process that has used torch can hang
    several = ProcessPoolExecutor(cores, spawn) if cores > 1 else contextlib.nullcontext()
    with bar, several as pool:
        try:
            for number in (pool.map if pool else map)(work, tasks):  # an error ends the others' work
                done += number
                bar.update(number)
                if time.monotonic() - saved > SAVED:
                    _note(pixels, target, done, marks)
                    saved = time.monotonic()
        except BrokenProcessPool:
            raise UserError(
                f"a process that decodes {path} was killed, perhaps for lack of memory: give fewer cores, {AGAIN}"
            ) from None
        finally:
            _note(pixels, target, done, marks)
    return pixels


def _source(path: Path) -> tuple[Path, Mark | None]:
    """Return a folder or zip, and of the zip what changes when it is written."""
    return path, None if path.is_dir() else files.mark(path)


def _room(target: Path, shape: tuple[int, ...], marks: Sequence[Mark | None]) -> tuple[np.memmap, int]:
    """Map pixels [n, C, H, W] from their file, and say how many are decoded; make it if it is not there.

    If one of the decoded pictures was written since, as their ``marks`` say, all are decoded again.
    """
    noted = target.with_suffix(".done")
    if target.is_file() and noted.is_file():
        done, _, seen = noted.read_text().partition(" ")
        if seen == digest(marks[: int(done)]):
            return np.lib.format.open_memmap(target, "r+"), int(done)
    target.parent.mkdir(parents=True, exist_ok=True)
    files.check_room(target.parent, int(np.prod(shape)))  # said before, not after hours
    return np.lib.format.open_memmap(target, "w+", np.uint8, shape), 0


def _note(pixels: np.memmap, target: Path, done: int, marks: Sequence[Mark | None]) -> None:
    """Note how many pictures are decoded, and what these were, once they have reached the disk."""
    pixels.flush()
    files.write(target.with_suffix(".done"), f"{done} {digest(marks[:done])}")


def _some(
    source: tuple[Path, Mark | None], target: Path, offset: int, form: Form, task: tuple[int, Sequence[str]]
) -> int:
    """Decode some pictures, one after the other, into the rows of the file from one on; return how many."""
    first, places = task
    with target.open("r+b") as file:
        file.seek(offset + first * int(np.prod(form.shape)))
        for place in places:
            try:
                pixels = pixels_of(_content(*source, place), place, form)
            except (SyntaxError, ValueError, *_CORRUPT) as error:
                raise UserError(
                    f"{source[0]}: {place} is not a readable picture ({error}). Fetch it again."
                ) from None
            file.write(np.ascontiguousarray(pixels).data)  # a mapping would cost a fault for each page
    return len(places)


def _content(path: Path, marked: Mark | None, place: str) -> bytes:
    return (path / place).read_bytes() if marked is None else _archive(path, marked).read(place)


@functools.lru_cache(maxsize=1)
def _archive(path: Path, _mark: Mark) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


class Pictures:
    """The files of a folder, and of folders that are linked there, or of a zip, which is not unpacked.

    Args:
        path: the folder or zip.
        depth: how many last parts of a path name a picture: 1 for its file name, 2 with the folder it lies in, 0 for
            all of them.

    Raises:
        UserError: ``path`` does not exist, is neither a folder nor a zip, or holds two files of the same name.
    """

    def __init__(self, path: Path, depth: int = 1) -> None:
        self.path, self._depth = path, depth
        if path.is_dir():
            places = [*files_below(path)]
        else:
            try:
                with zipfile.ZipFile(path) as archive:
                    names = [name for name in archive.namelist() if not name.endswith("/")]
                places = [
                    name for name in names if not any(part[:1] == "." != part for part in name.split("/"))
                ]
            except (OSError, zipfile.BadZipFile) as error:
                raise UserError(f"{path} is neither a folder nor a zip file ({error}).") from None
        self._places: dict[str, str] = {}
        for place in places:
            name = last_parts(place, depth)
            if self._places.setdefault(name, place) != place:
                raise UserError(f"{path} holds {name} twice: give the folder or zip that is meant.")

    def __contains__(self, name: str) -> bool:
        return last_parts(name, self._depth) in self._places

    def names(self) -> list[str]:
        """List the file names, sorted."""
        return sorted(self._places)

    def check(self, names: Sequence[str], table: Path) -> None:
        """Raise UserError, which names one, unless all pictures that a table lists are there."""
        if missing := [name for name in names if name not in self]:
            raise UserError(
                f"{self.path} lacks {len(missing)} of the {len(names)} pictures that {table.name} lists, such as "
                f"{missing[0]!r}: add them there, or mend the table"
            )

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        try:
            return _content(*_source(self.path), self._place(name))
        except _CORRUPT as error:
            raise UserError(f"{self.path}: {name} is corrupt ({error}). Fetch it again.") from None

    def load(self, names: Sequence[str], form: Form) -> np.ndarray:
        """Decode pictures: ``[n, C, H, W]`` uint8, mapped from a file.

        Raises:
            UserError: a file is not there, or is not a picture, or a process was killed. What was decoded is kept and
                not done again.
        """
        places = [self._place(name) for name in names]
        if (workplace := _workplace.get()) is not None:
            return _decoded(*workplace, self.path, places, form)
        with tempfile.TemporaryDirectory() as folder:  # the mapping outlives the file
            return _decoded(Path(folder), 1, self.path, places, form)

    def _place(self, name: str) -> str:
        if name not in self:
            raise UserError(f"{self.path} has no file {name}.")
        return self._places[last_parts(name, self._depth)]


def last_parts(path: str, depth: int) -> str:
    """Return the last parts of a path, the file's name included: ``last_parts("a/b/c.png", 2)`` is ``b/c.png``."""
    return "/".join([part for part in path.split("/") if part not in ("", ".")][-depth:])
