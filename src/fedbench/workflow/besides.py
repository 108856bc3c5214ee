"""What tables and figures show besides the results of their cells, as digests: when one changes they are made again.

Digests of content, not of times: a file that is written again as it was changes nothing.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import fedbench
from fedbench.plan.configuration import CONFIG_DIR, load_config
from fedbench.plan.schema import Config, Paper
from fedbench.report.files import REPRODUCED
from fedbench.report.numbers import published
from fedbench.specs import digest

SILENT = {"checkpoint_seconds", "client_chunk", "compile", "data_dir", "device", "inputs", "mirror", "paper"}
"""Keys of the configuration that no table shows: they decide how and where work is done."""
TRAINING = {"algorithms", "datasets", "engine", "models", "net", "objectives", "partitions", "tasks"}
"""Folders of the library whose code trains, and builds no table or figure."""
LIBRARY = Path(fedbench.__file__).parent


def of_paper(config: Config, paper: Paper, extended: Paper | None) -> list[str]:
    """Name and digest what any table or figure of a paper shows besides results.

    Args:
        config: of this call.
        paper: whose tables and figures they are.
        extended: the paper that it extends, if there is one.
    """
    papers = [paper, *([extended] if extended else [])]
    printed = [
        published.locate(paper.key, spec.published) for spec in paper.tables.values() if spec.published
    ]
    return _named(config, [each.key for each in papers], printed)


def of_all(config: Config) -> list[str]:
    """Name and digest what the report page shows besides results: it shows every paper."""
    return _named(config, ["*"], published.FOLDER.rglob("*.csv"))


def code() -> str:
    """Name and digest the code that tables and figures are made by."""
    return f"code {_code()}"


def _named(config: Config, papers: Sequence[str], printed: Iterable[Path]) -> list[str]:
    written = ("papers/{}.yaml", "tuned/{}/**/*.yaml")
    about = [CONFIG_DIR.glob(place.format(paper)) for place in written for paper in papers]
    about += [CONFIG_DIR.glob("scales/*.yaml"), CONFIG_DIR.glob("datasets/*.yaml")]
    places = ["facts.csv", *(f"*/**/{paper}.csv" for paper in papers)] if config.shipped else []
    shipped = (path for place in places for path in REPRODUCED.glob(place))
    return [
        code(),
        f"options {digest([each.model_dump(mode='json', exclude=SILENT) for each in (config, load_config())])}",
        f"configuration {_content(itertools.chain(*about))}",
        f"print {_content([*printed, published.FOLDER / 'index.csv'])}",
        f"shipped {_content(shipped)}",
    ]


@functools.cache
def _code() -> str:
    """Digest the library as it was when this process began, once."""
    return _content(_library(), LIBRARY)


def _library() -> Iterator[Path]:
    for path in LIBRARY.rglob("*.*"):
        if path.suffix != ".pyc" and not TRAINING & {*path.relative_to(LIBRARY).parts}:
            yield path


def _content(paths: Iterable[Path], root: Path = Path()) -> str:
    """Digest the names and the bytes of files; those that are not there have neither."""
    present = sorted({path for path in paths if path.is_file()})
    return digest(
        [[str(path.relative_to(root)), hashlib.sha256(path.read_bytes()).hexdigest()] for path in present]
    )
