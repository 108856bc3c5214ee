"""``fedbench new``: a commented skeleton of a method, a task or a dataset, with its test."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import ModuleType

from fedbench import algorithms, registry, tasks
from fedbench.data import datasets
from fedbench.errors import UserError, unknown


@dataclass(frozen=True)
class Kind:
    """Something that is one file: the package it becomes a part of, and where its test goes."""

    package: ModuleType
    tests: str
    use: str

    @property
    def folder(self) -> Path:
        """The package's folder in a clone."""
        return Path("src", *self.package.__name__.split("."))


KINDS = {
    "method": Kind(
        algorithms,
        "tests/unit/algorithms",
        "methods: {ExampleName: {algorithm: example_name, params: {lr: 0.1, momentum: 0.8}}}",
    ),
    "task": Kind(tasks, "tests/unit/tasks", "defaults: {task: {name: example_name, options: {margin: 1.0}}}"),
    "dataset": Kind(
        datasets,
        "tests/unit/data",
        "datasets: {ExampleName: {data: {dataset: example_name}, network: {name: mlp}}}",
    ),
}


def write(kind: str, name: str) -> list[str]:
    """Write the skeleton of a ``kind`` called ``name`` and its test into the clone that is the working directory.

    Returns:
        What to tell the user: the files, and what to do next.

    Raises:
        UserError: the name is no good or taken, a file is in the way, or this is no clone that is installed.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    what = KINDS[kind]
    _check_name(kind, name)
    _check_clone(what)
    parts = {
        what.folder / f"{name}.py": f"{kind}.py",
        Path(what.tests, f"test_{kind}_{name}.py"): f"test_{kind}.py",
    }
    for path in parts:
        if path.exists():
            raise UserError(
                f"{path} exists; nothing was written. Choose another name, or move the file away."
            )
    title = "".join(part.capitalize() for part in name.split("_"))

    def named(text: str) -> str:
        return text.replace("example_name", name).replace("ExampleName", title)

    for path, template in parts.items():
        text = (resources.files("fedbench.commands") / "templates" / template).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(named(text), encoding="utf-8")
    code, test = parts
    return [
        f"wrote {code}",
        f"wrote {test}",
        f"test it with:  python -m pytest {test}",
        f"name it in a paper's YAML (docs/paper.md), as in:  {named(what.use)}",
    ]


def _check_name(kind: str, name: str) -> None:
    """Refuse what cannot be a file of Python, and names that are taken."""
    good = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", name, flags=re.ASCII).lower().strip("_")
    if keyword.iskeyword(name):
        raise UserError(
            f"{name!r} is a word of Python and cannot be the name of a {kind}: choose another name"
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        usable = name.isascii() and re.fullmatch(r"[a-z][a-z0-9_]*", good) and not keyword.iskeyword(good)
        hint = f", e.g. {good}" if usable and good != name else ""
        raise UserError(
            f"{name!r} cannot be the name of a {kind}: small letters, digits and _, a letter first{hint}"
        )
    package = KINDS[kind].package
    taken = datasets.names() if kind == "dataset" else registry.names(package)
    if name in taken:
        origin = registry.origins(package).get(name)
        raise UserError(
            f"there is a {kind} {name!r} already" + (f", of the package {origin}" if origin else "")
        )
    alike = {other.replace("_", ""): other for other in taken}.get(name.replace("_", ""))
    if alike is not None:
        raise UserError(
            f"there is a {kind} {alike!r}; {name!r} is easily confused with it: choose another name"
        )


def _check_clone(what: Kind) -> None:
    """Refuse to write where Python would not find it: next to a fedbench that is not the one installed."""
    written_to, used = what.folder.resolve(), Path(what.package.__path__[0]).resolve()
    if written_to != used:
        raise UserError(
            f"{what.folder} is not the fedbench that is installed, which is {used}. Run this in a clone after "
            "`make setup`; in a package of your own, use entry points (docs/package.md)"
        )
