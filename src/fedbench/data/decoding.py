"""Many pictures decoded, by several processes, into a file that goes on after a kill where it was."""

from __future__ import annotations

import contextlib
import functools
import io
import multiprocessing
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Workplace:
    """Where pictures are decoded: the folder that keeps them until the arrays are written, the number of processes."""

    folder: Path
    cores: int = 1


_place: ContextVar[Workplace | None] = ContextVar("workplace", default=None)


@contextlib.contextmanager
def workplace(folder: Path, cores: int) -> Iterator[None]:
    """Let all pictures be decoded into files of ``folder`` by so many processes, in this block.

    A dataset's ``prepare`` need not know of it. The caller removes the folder once the arrays are written.
    """
    token = _place.set(Workplace(folder, cores))
    try:
        yield
    finally:
        _place.reset(token)


def decode(path: Path, names: Sequence[str], places: Sequence[str], form: Form) -> np.ndarray:
    """Decode pictures into one array, mapped from a file.

    Args:
        path: the folder or zip they lie in.
        names: what messages call them.
        places: their paths, in the zip or from here.
        form: what is made of each.

    Returns:
        ``[n, C, H, W]`` uint8.

    Raises:
        UserError: a picture cannot be read, or a process was killed. What was decoded is kept and not done again.
    """
    place = _place.get()
    if place is None:  # a program of its own asks
        with tempfile.TemporaryDirectory() as folder:  # the mapping outlives the file
            return _decoded(Workplace(Path(folder)), path, names, places, form)
    return _decoded(place, path, names, places, form)


def _decoded(
    place: Workplace, path: Path, names: Sequence[str], places: Sequence[str], form: Form
) -> np.ndarray:
    shape = (len(names), *form.shape)
    # of a folder the names of its pictures have to do
    source = (path, None if path.is_dir() else files.mark(path))
    target = place.folder / f"{digest([str(source), list(places), repr(form)])}.npy"
    pixels, done = _room(target, shape)
    todo = np.flatnonzero(done == 0)
    tasks = [todo[at : at + _TOGETHER] for at in range(0, len(todo), _TOGETHER)]
    given = (([names[i] for i in task], [places[i] for i in task], task) for task in tasks)
    work = functools.partial(_some, source, target, getattr(pixels, "offset", 0), form)
    seen, saved = list[np.ndarray](), time.monotonic()
    quiet = {} if sys.stderr.isatty() else {"delay": 30, "mininterval": 30}  # a log gets a line now and then
    bar = tqdm(total=len(names), initial=len(names) - len(todo), desc=path.name, unit=" pictures", **quiet)
    with bar, _mapping(min(place.cores, len(tasks)) if len(todo) > _FEW else 1) as mapped:
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
    given: tuple[list[str], list[str], np.ndarray],
) -> np.ndarray:
    """Decode some pictures, one after the other, into their rows of the file; return the numbers of these."""
    names, places, rows = given
    with target.open("r+b") as file:
        for row, name, place in zip(rows, names, places, strict=True):
            pixels = _pixels(source, name, place, form)
            file.seek(start + int(row) * pixels.size)
            file.write(np.ascontiguousarray(pixels).data)  # a mapping would cost a fault for each page
    return rows


def _pixels(source: tuple[Path, Mark | None], name: str, place: str, form: Form) -> np.ndarray:
    unreadable = OSError, EOFError, SyntaxError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error
    try:
        return pixels_of(_read(*source, place), name, form)
    except unreadable as error:
        raise UserError(f"{source[0]}: {name} is not a readable picture ({error}). Fetch it again.") from None


def _read(path: Path, marked: Mark | None, place: str) -> bytes:
    return Path(place).read_bytes() if marked is None else _archive(path, marked).read(place)


@functools.lru_cache(maxsize=1)
def _archive(path: Path, _mark: Mark) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)
