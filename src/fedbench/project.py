"""Where a project is read from: the current folder if it holds ``config/``, else what fedbench brings.

A wheel has the configuration, the published values, the reference results and the workflow in ``fedbench/project``, a
clone has them in its root. Nothing is ever written there: results, data and tables are the current folder's.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path

from fedbench import files
from fedbench.errors import UserError

PARTS = ("Snakefile", "config", "data_prep", "profiles", "published", "reproduced", "workflow")
"""What makes a project; pyproject.toml puts it into the wheel."""
_PACKAGED = Path(__file__).with_name("project")
SOURCE = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2]
"""What fedbench brings."""


def is_here() -> bool:
    """Say whether the current folder is a project."""
    return Path("config").is_dir()


def check_own(command: str) -> None:
    """Raise UserError where a command would write into what fedbench brings."""
    if not is_here():
        raise UserError(
            f"`fedbench {command}` changes the project, and there is no config/ here; run `fedbench init` first"
        )


def named(path: Path) -> str:
    """Return a file's name in its project, which is the same wherever fedbench is installed."""
    return str(path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path)


def start(folder: Path) -> list[Path]:
    """Copy what fedbench brings into a folder, and return the files. What broke off is completed by the next call.

    Raises:
        UserError: a file exists already with other content; then nothing is copied.
        WriteError: the disk takes no files.
    """
    copies = {folder / path.relative_to(SOURCE): path for path in _files()}
    for path, source in copies.items():
        if path.exists() and not filecmp.cmp(path, source, shallow=False):
            raise UserError(f"{path} exists already; give a new folder: fedbench init FOLDER")
    for path, source in copies.items():
        with files.atomic(path) as temporary:
            shutil.copy(source, temporary)
    return [*copies]


def _files() -> Iterator[Path]:
    """Yield the files of what fedbench brings."""
    for part in PARTS:
        paths = sorted((SOURCE / part).rglob("*")) or [SOURCE / part]
        yield from (path for path in paths if path.is_file() and path.parent.name != "__pycache__")


class Folder:
    """A folder of the project, looked up anew at each use, as the current folder may change."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __fspath__(self) -> str:
        """Return where the folder is."""
        return self._name if is_here() else str(SOURCE / self._name)

    __str__ = __fspath__

    def __truediv__(self, name: str | Path) -> Path:
        """Return the path of something in the folder."""
        return Path(self) / name

    def glob(self, pattern: str) -> Iterator[Path]:
        """Yield what matches a pattern, as :meth:`pathlib.Path.glob` does; ``**`` crosses folders."""
        return Path(self).glob(pattern)
