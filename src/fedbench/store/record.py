"""The record of a finished run, ``run.json``: what it may say, and reading it against its checksums."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AllowInfNan,
    ConfigDict,
    StrictFloat,
    StrictInt,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from fedbench import files, sealed_json
from fedbench.errors import shortened
from fedbench.spec import digest

MODEL, READING, PREDICTIONS = "model.pt", "reading.json", "predictions.csv"
"""Of a run that keeps them: weights by name, how a file becomes their inputs, the scores of test and validation."""
FILES = ("run.json", "curve.csv", "clients.csv", MODEL, READING, PREDICTIONS)
"""What a run's folder may hold."""
LARGEST = 1 << 28
"""Bytes a file of a run may have; the largest curves are a thousandth of this."""


def _like_a_run(spec: dict[str, Any]) -> dict[str, Any]:
    """Refuse a specification whose parts that the program uses are of the wrong kind; it may have others."""
    data = spec.get("data", {})
    seed = spec.get("seed")
    if type(seed) is not int or seed < 0:
        raise ValueError("its seed is not a whole number from 0")
    if not isinstance(data, dict) or not all(
        isinstance(x, str) for x in (spec.get("method", ""), data.get("dataset", ""))
    ):
        raise ValueError("its method or dataset is not a name")
    return spec


def _like_provenance(made: dict[str, Any]) -> dict[str, Any]:
    """Refuse a provenance whose known parts are of the wrong kind."""
    texts = [made.get(name, "") for name in ("commit", "code", "hardware", "device", "data")]
    versions = made.get("versions", {})
    times = [made.get("evaluation_seconds", []), made.get("curve_seconds", [])]
    good = isinstance(versions, dict) and all(isinstance(each, list) for each in times)
    good = good and all(
        type(each) in (int, float) for each in [made.get("seconds", 0.0), *times[0], *times[1]]
    )
    words = [*texts, *versions, *versions.values()] if good else []
    if not good or not all(isinstance(text, str) for text in words):
        raise ValueError("its provenance holds something else than texts and seconds")
    for text in words:
        _printable(text)
    return made


def _printable(text: str) -> str:
    """Refuse words that would do something to a terminal."""
    if not text.isprintable():
        raise ValueError("its words have control characters")
    return text


def _like_facts(facts: dict[str, dict[str, float | str]]) -> dict[str, dict[str, float | str]]:
    """Refuse facts of other names, words for numbers and numbers for words."""
    for name, value in (pair for of in facts.values() for pair in of.items()):
        # "other": of runs made before 28 November 2026
        if name not in ("pace", "other", "sign") or isinstance(value, str) != (name == "sign"):
            raise ValueError(f"its facts hold {name}: {value!r}")
        _printable(str(value))
    return facts


Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[StrictFloat, AllowInfNan(False)] | StrictInt | None
Known = Annotated[StrictFloat, AllowInfNan(False)] | StrictInt | str
Facts = Annotated[dict[str, dict[str, Known]], AfterValidator(_like_facts)]
"""What is known of a run beside its metrics, by metric: :func:`fedbench.results.run_facts.run_facts`."""


@dataclass(frozen=True)
class Record:
    """A finished run.

    Attributes:
        key: the run's key.
        spec: its resolved specification.
        status: ``finished`` or ``diverged``.
        reason: why it diverged.
        metrics: final metrics by name; None where a metric is undefined.
        provenance: commit, versions, hardware, device, times.
        files: SHA-256 of the other files in its folder.
        facts: what is known beside its final metrics.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    key: Key
    spec: Annotated[dict[str, Any], AfterValidator(_like_a_run)]
    status: Annotated[str, StringConstraints(pattern=r"^(finished|diverged)$")]
    reason: Annotated[str, AfterValidator(_printable)]
    metrics: dict[str, Number]
    provenance: Annotated[dict[str, Any], AfterValidator(_like_provenance)]
    files: dict[Literal["curve.csv", "clients.csv", "model.pt", "reading.json", "predictions.csv"], Sha]
    facts: Facts = field(default_factory=dict)


_RECORD = TypeAdapter(Record)


def read_run(folder: Path, key: str) -> Record:
    """Read the run in ``folder`` and hold it against its checksums; once, while its files stay what they are.

    Raises:
        ValueError: it is not whole, not what was written, or not the run ``key``; the message says which.
        ReadError: it cannot be read now, which says nothing against it.
    """
    return _read_run(folder, key, tuple(files.mark(folder / name) for name in FILES))


@functools.lru_cache(maxsize=1 << 14)
def _read_run(folder: Path, key: str, _marks: tuple[files.Mark | None, ...]) -> Record:
    record = read_record(folder, key)
    for name, sha in record.files.items():
        if _sha(folder / name) != sha:
            raise ValueError(f"{name} is not what was written")
    return record


def read_record(folder: Path, key: str) -> Record:
    """Read the record of the run in ``folder`` alone, without a look at its other files; errors as :func:`read_run`."""
    return _checked(folder, key, files.mark(folder / "run.json"))


@functools.lru_cache(maxsize=1 << 14)
def _checked(folder: Path, key: str, _mark: files.Mark | None) -> Record:
    try:
        record = _RECORD.validate_python(sealed_json.read(folder / "run.json"))
    except FileNotFoundError:
        raise ValueError("run.json is missing") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(
            shortened(f"run.json: {where}: {first['msg'].removeprefix('Value error, ')}")
        ) from None
    if record.key != key:
        raise ValueError(f"it holds the run {record.key}")
    if digest(record.spec) != key:
        raise ValueError(f"its specification is that of the run {digest(record.spec)}")
    return record


def _sha(path: Path) -> str:
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing") from None
