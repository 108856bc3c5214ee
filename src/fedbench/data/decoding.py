"""Folders and zips of pictures, decoded by several processes into a file that goes on after a kill where it was."""

from __future__ import annotations

import contextlib
import functools
import io
import multiprocessing
import os
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from pathlib import Path
from typing import Self

import numpy as np
from tqdm import tqdm

from fedbench import files
from fedbench.data.picture import Form, pixels_of
from fedbench.errors import AGAIN, UserError
from fedbench.files import Mark
from fedbench.spec import digest

_FEW = 256
"""Pictures up to which one process is as fast as several, which have to start."""
_TOGETHER = 32
"""Pictures that a process is given at a time."""
SAVED = 10.0
"""Seconds after which what is decoded is noted as such."""


_place: ContextVar[tuple[Path, int] | None] = ContextVar("workplace", default=None)


@contextlib.contextmanager
def workplace(folder: Path, cores: int) -> Iterator[None]:
    """Let all pictures be decoded into files of ``folder`` by so many processes, in this block.

    A dataset's ``prepare`` need not know of it. The caller removes the folder once the arrays are written.
    """
    token = _place.set((folder, cores))
    try:
        yield
    finally:
        _place.reset(token)


def decode(path: Path, places: Sequence[str], form: Form) -> np.ndarray:
    """Decode pictures into one array, mapped from a file.

    Args:
        path: the folder or zip they lie in.
        places: their paths there.
        form: what is made of each.

    Returns:
        ``[n, C, H, W]`` uint8.

    Raises:
        UserError: a picture cannot be read, or a process was killed. What was decoded is kept and not done again.
    """
    if (place := _place.get()) is not None:
        return _decoded(*place, path, places, form)
    with tempfile.TemporaryDirectory() as folder:  # a program of its own asks; the mapping outlives the file
        return _decoded(Path(folder), 1, path, places, form)


def _decoded(folder: Path, cores: int, path: Path, places: Sequence[str], form: Form) -> np.ndarray:
    # of a folder the names of its pictures have to do
    source = (path, None if path.is_dir() else files.mark(path))
    target = folder / f"{digest([str(source), list(places), repr(form)])}.npy"
    pixels, done = _room(target, (len(places), *form.shape))
    todo = np.flatnonzero(done == 0)
    tasks = [todo[at : at + _TOGETHER] for at in range(0, len(todo), _TOGETHER)]
    given = (([places[i] for i in task], task) for task in tasks)
    work = functools.partial(_some, source, target, getattr(pixels, "offset", 0), form)
    seen, saved = list[np.ndarray](), time.monotonic()
    quiet = {} if sys.stderr.isatty() else {"delay": 30, "mininterval": 30}  # a log gets a line now and then
    bar = tqdm(total=len(places), initial=len(places) - len(todo), desc=path.name, unit=" pictures", **quiet)
    with bar, _mapping(min(cores, len(tasks)) if len(todo) > _FEW else 1) as mapped:
        try:
            for task in mapped(work, given):
                seen.append(task)
                bar.update(len(task))
                if time.monotonic() - saved > SAVED:
                    _note(pixels, done, seen)
                    saved = time.monotonic()
        except BrokenProcessPool:
            raise UserError(
                f"a process that decodes {path} was killed, perhaps for lack of memory: give fewer cores, {AGAIN}"
            ) from None
        finally:
            _note(pixels, done, seen)
    return pixels


def _room(target: Path, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Map pixels [n, C, H, W] from their file, and [n] of 1 where they are decoded; make both if they are not there."""
    noted = target.with_suffix(".done")
    if not shape[0]:
        return np.empty(shape, np.uint8), np.empty(0, np.uint8)
    if not noted.is_file() or not target.is_file():
        noted.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
        # a mapping of a file that finds no room on the disk kills the process
        files.reserve(target, len(header.getvalue()) + int(np.prod(shape)))
        with target.open("r+b") as file:
            file.write(header.getvalue())
        files.write(noted, bytes(shape[0]))
    return np.lib.format.open_memmap(target, "r+"), np.memmap(noted, np.uint8, "r+")


def _note(pixels: np.ndarray, done: np.ndarray, seen: list[np.ndarray]) -> None:
    """Note what is decoded, once it has reached the disk."""
    if seen and isinstance(pixels, np.memmap) and isinstance(done, np.memmap):
        pixels.flush()
        done[np.concatenate(seen)] = 1
        done.flush()
        seen.clear()


@contextlib.contextmanager
def _mapping(cores: int) -> Iterator[Callable[..., Iterator[np.ndarray]]]:
    """Yield ``map``, of this process or of several; an error ends the others' work."""
    if cores <= 1:
        yield map
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process that has used torch can hang
    with ProcessPoolExecutor(cores, context) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)


def _some(
    source: tuple[Path, Mark | None],
    target: Path,
    start: int,
    form: Form,
    given: tuple[list[str], np.ndarray],
) -> np.ndarray:
    """Decode some pictures, one after the other, into their rows of the file; return the numbers of these."""
    with target.open("r+b") as file:
        for place, row in zip(*given, strict=True):
            pixels = _pixels(*source, place, form)
            file.seek(start + int(row) * pixels.size)
            file.write(np.ascontiguousarray(pixels).data)  # a mapping would cost a fault for each page
    return given[1]


def _pixels(path: Path, marked: Mark | None, place: str, form: Form) -> np.ndarray:
    unreadable = OSError, EOFError, SyntaxError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error
    try:
        content = (path / place).read_bytes() if marked is None else _archive(path, marked).read(place)
        return pixels_of(content, place, form)
    except unreadable as error:
        raise UserError(f"{path}: {place} is not a readable picture ({error}). Fetch it again.") from None


@functools.lru_cache(maxsize=1)
def _archive(path: Path, _mark: Mark) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


class Pictures:
    """The files of a folder or of a zip, by file name (folders around them are ignored).

    A zip is read without unpacking it. Use as a context manager.

    Args:
        path: the folder or zip.
        depth: how many last parts of a path name a picture: 1 for its file name, 2 with the folder it lies in.

    Raises:
        UserError: ``path`` does not exist, is neither a folder nor a zip, or holds two files of the same name.
    """

    def __init__(self, path: Path, depth: int = 1) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            places = [
                os.path.relpath(f"{folder}/{name}", path)
                for folder, _, names in os.walk(path)
                for name in names
            ]
        else:
            try:
                self._zip = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as error:
                raise UserError(f"{path} is neither a folder nor a zip file ({error}).") from None
            places = [name for name in self._zip.namelist() if not name.endswith("/")]
        self._places: dict[str, str] = {}
        for place in places:
            name = last_parts(place, depth)
            if self._places.setdefault(name, place) != place:
                raise UserError(f"{path} holds {name} twice: give the folder or zip that is meant.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._zip is not None:
            self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> list[str]:
        """List the file names, sorted."""
        return sorted(self._places)

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        place = self._place(name)
        try:
            return self._zip.read(place) if self._zip else (self.path / place).read_bytes()
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise UserError(f"{self.path}: {name} is corrupt ({error}). Fetch it again.") from None

    def load(
        self, names: Sequence[str], size: tuple[int, int], grey: bool = False, draft: bool = False
    ) -> np.ndarray:
        """Decode pictures and resize them to (height, width); see :class:`fedbench.data.picture.Form`.

        Returns:
            ``[n, 3, H, W]`` uint8 RGB or, with ``grey``, ``[n, 1, H, W]``, mapped from a file.

        Raises:
            UserError: a file is not there, or is not a picture.
        """
        places = [self._place(name) for name in names]
        return decode(self.path, places, Form(size, grey, draft))

    def _place(self, name: str) -> str:
        if name not in self._places:
            raise UserError(f"{self.path} has no file {name}.")
        return self._places[name]


def last_parts(path: str, depth: int) -> str:
    """Return the last parts of a path, the file's name included: ``last_parts("a/b/c.png", 2)`` is ``b/c.png``."""
    return "/".join([part for part in path.split("/") if part not in ("", ".")][-depth:])
