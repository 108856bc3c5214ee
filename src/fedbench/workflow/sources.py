"""The files that tables and figures show besides results, and the digests by which a change of them is seen."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import fedbench
from fedbench import files
from fedbench.outputs import REPRODUCED
from fedbench.results import published
from fedbench.spec import digest
from fedbench.study.configuration import CONFIG_DIR
from fedbench.study.schema import Paper

TRAINING = {"algorithms", "datasets", "engine", "models", "net", "objectives", "partitions", "tasks"}
"""Folders of the library whose code trains, and builds no table or figure."""
LIBRARY = Path(fedbench.__file__).parent


def configuration_of(studies: Sequence[str]) -> list[str]:
    """List the YAML files that the tables of studies (``*``: of all) are described by, and what was tuned for them."""
    places = ("papers/{}.yaml", "studies/{}.yaml", "tuned/{}/**/*.yaml")
    about = [CONFIG_DIR.glob(place.format(study)) for place in places for study in studies]
    about += [CONFIG_DIR.glob(place) for place in ("config.yaml", "scales/*.yaml", "datasets/*.yaml")]
    return _present(path for paths in about for path in paths)


def published_of(study: Paper | None) -> list[str]:
    """List the CSVs of the printed numbers of a study, or of all, and what says how they were read."""
    if study is None:
        return _present(published.FOLDER.glob("**/*.csv"))
    printed = (
        published.locate(study.key, table.published) for table in study.tables.values() if table.published
    )
    return _present([*printed, published.FOLDER / "index.csv"])


def shipped_of(studies: Sequence[str]) -> list[str]:
    """List the CSVs of the numbers and curves that are shipped for studies (``*``: for all)."""
    places = ["facts.csv", *(f"*/**/{study}.csv" for study in studies)]
    return _present(path for place in places for path in REPRODUCED.glob(place))


@functools.cache
def code() -> str:
    """Digest the library that tables and figures are made by, as it was when this process began."""
    return digest(
        [
            [str(path.relative_to(LIBRARY)), hashlib.sha256(path.read_bytes()).hexdigest()]
            for path in sorted(LIBRARY.rglob("*.*"))
            if path.suffix != ".pyc" and not TRAINING & {*path.relative_to(LIBRARY).parts}
        ]
    )


def digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the digests of the contents of files by their names."""
    return {path: _content(path, files.mark(Path(path))) for path in paths}


@functools.lru_cache(maxsize=4096)
def _content(path: str, _mark: files.Mark | None) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _present(paths: Iterable[Path]) -> list[str]:
    return sorted({str(path) for path in paths if path.is_file()})
