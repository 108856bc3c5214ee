"""Requests: what a target is made of beyond files, as a small file that is an input of its rule.

``results/requests/<paper>/<target>/request.json`` holds the configuration of the call, a digest of the code that makes
tables, and the digests of the files that the target shows besides results. It is written again only when that changes,
and is newer then than what was made before: Snakemake makes the target again, whatever it remembers in ``.snakemake``.
The time in it makes each one unlike all earlier ones.

Cells need none of their own, as the file of a cell lists the keys of its runs. All that are not what is asked for have
``results/requests/training/request.json`` as an input, written once in a call that trains.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fedbench
from fedbench import files
from fedbench.errors import UserError
from fedbench.spec import digest

FOLDER = Path("results", "requests")
TRAINING = "training"
TRAINS = {"algorithms", "datasets", "engine", "models", "net", "objectives", "partitions", "tasks"}
"""Folders of the library whose code trains, and builds no table or figure."""
LIBRARY = Path(fedbench.__file__).parent


def path_of(*target: str) -> Path:
    """Return where the request for a target is, such as ``localscgdam``, ``table1``."""
    # a folder for each: Snakemake lists a folder once, and takes for missing what is written there later
    return FOLDER.joinpath(*target, "request.json")


def drop(*target: str) -> None:
    """Remove the request for a target that is now made otherwise: the workflow's next call makes it again."""
    path_of(*target).unlink(missing_ok=True)


def config_of(path: Path) -> dict[str, Any]:
    """Return the keys of the configuration that a request gives.

    Raises:
        UserError: it is not there, or no request.
    """
    request = _read(path)
    if not isinstance(request.get("config"), dict):
        raise UserError(f"{path} is no request of the workflow; leave --request out")
    return dict(request["config"])


class Requests:
    """The requests of one call of the workflow.

    Args:
        passing: for this process alone, as in a dry run: when it ends, the files are what they were before.
        frozen: write nothing: this is a job; its call has written them.
    """

    def __init__(self, passing: bool = False, frozen: bool = False) -> None:
        self._passing, self._frozen = passing, frozen
        self._asked: set[Path] = set()

    def ask(self, target: tuple[str, ...], content: Mapping[str, Any], anew: bool = False) -> str:
        """Return the path of a target's request for this content, written unless it was one for the same.

        With ``anew`` it is written in any case, once in a call.
        """
        path = path_of(*target)
        if path not in self._asked and not self._frozen:
            self._asked.add(path)
            before = _read(path)
            if anew or {**before, "asked": ""} != json.loads(json.dumps({**content, "asked": ""})):
                self._write(path, content)
        return str(path)

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        if self._passing:
            _restore_at_end(path)
        now = datetime.datetime.now(datetime.UTC).isoformat()
        path.parent.mkdir(parents=True, exist_ok=True)
        # without waiting for the disk, as hundreds may be written: half a request is none, and is written again
        path.write_text(json.dumps({"asked": now, **content}, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a request, nothing where there is none."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text())
        return content if isinstance(content, dict) else {}
    return {}


def _restore_at_end(path: Path) -> None:
    """Give a file the content and the times that it has now when this process ends."""
    state = path.stat() if path.is_file() else None
    content = path.read_bytes() if state else b""

    def restore() -> None:
        with contextlib.suppress(OSError):
            if state is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
                os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    atexit.register(restore)


@functools.cache
def code() -> str:
    """Digest the library that tables and figures are made by, as it was when this process began."""
    return digest(
        [
            [str(path.relative_to(LIBRARY)), hashlib.sha256(path.read_bytes()).hexdigest()]
            for path in sorted(LIBRARY.rglob("*.*"))
            if path.suffix != ".pyc" and not TRAINS & {*path.relative_to(LIBRARY).parts}
        ]
    )


def digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the digests of the contents of files by their names."""
    return {path: _content(path, files.mark(Path(path))) for path in paths}


@functools.lru_cache(maxsize=4096)
def _content(path: str, _mark: files.Mark | None) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
