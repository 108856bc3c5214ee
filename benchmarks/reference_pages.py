"""The pages of methods, networks, datasets and keys, written from docstrings and facts of code: ``make numbers``."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from medmnist.info import INFO

from fedbench import algorithms, models, registry
from fedbench.commands.schema import FILES, Schema, described
from fedbench.data import datasets
from fedbench.data.dataset import Dataset
from fedbench.data.datasets import _medmnist as medmnist
from fedbench.task import LabelledTask, Task

SHAPES = {"grey pictures of 28 x 28": (1, 28, 28), "colour pictures of 32 x 32": (3, 32, 32)}
METHODS = """# Methods

A study names a method by `algorithm:` and gives its hyper-parameters under `params:` ([Your paper](../howto/paper.md)).
Hyper-parameters without a default are required, and a value outside its range is refused. The column *data* says what a
method trains on; a method for any task also trains on classes. `make numbers` writes this page from the code.

| name | method | data |
| --- | --- | --- |
"""
NETWORKS = """# Networks

A dataset of a study names a network and its options: `network: {name: cnn, options: {kernel: 3}}`. Options that are
left out have their default. [A file](../howto/network.md) adds one. `make numbers` writes this page from the code.
"""
DATASETS = """# Datasets

A study names a dataset by `data: {dataset: mnist}`. A sample is channels x height x width, or a number of features.
*Options* change in a YAML of yours, as in `base: heart` with `options: {test_share: 0.3}`. What is downloaded is
checked against known checksums; `fedbench doctor` says what is here. The sets of MedMNIST have larger pictures under
`NAME_64`, `NAME_128` and `NAME_224`. [Your own data](../howto/data.md) need no code. `make numbers` writes this page
from the code.

| name | what it is | sample | options | licence | obtained |
| --- | --- | --- | --- | --- | --- |
"""
KEYS = """# All keys

`make numbers` writes this page from the code. Editors with a YAML language server (for VS Code: the YAML extension)
complete and check these files, whose first line names their schema.
"""


def markdown(docstring: str | None) -> str:
    """Return a docstring as Markdown, without attributes and errors."""
    text = re.split(r"\n(?:Attributes|Raises):\n", f"\n{inspect.cleandoc(docstring or '')}")[0].strip()
    return re.sub(r":\w+:`[\w.~]*?(\w+)`", r"`\1`", text).replace("``", "`")


def title(module: str) -> str:
    """Return the first sentence of a module, on one line."""
    return " ".join(markdown(sys.modules[module].__doc__).partition("\n\n")[0].split())


def meanings(kind: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say of each attribute."""
    said = dict[str, str]()
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        for names, words in re.findall(r"^    (\w[\w, ]*): (.*(?:\n     +.*)*)", text, flags=re.M):
            said |= dict.fromkeys(names.split(", "), markdown(" ".join(words.split())))
    return said


def hyper_parameters(kind: type) -> Iterator[str]:
    """Yield a line for each hyper-parameter of a method: its range, default and meaning."""
    takes, said = registry.fields_of(kind), meanings(kind)
    for field in dataclasses.fields(kind):
        facts = in_words(takes[field.name].json_schema()) + " or `null`" * (field.default is None)
        if field.default is not dataclasses.MISSING:
            facts += f", default `{written(field.default)}`"
        yield f"* **`{field.name}`** ({facts}): {said[field.name]}\n"


def written(value: Any) -> str:
    """Write a default as YAML does."""
    return "null" if value is None else json.dumps(value).strip('"')


def methods() -> str:
    """Write all methods: source, equations and hyper-parameters of each."""
    lines, parts = list[str](), list[str]()
    for name in registry.names(algorithms):
        kind = registry.find(algorithms, "method", name, "Method")
        task = {Task: "any task", LabelledTask: "classes"}.get(kind.task, "nested draws")
        lines.append(
            f"| [`{name}`](#{name}) | {title(kind.__module__)} | {'two classes' if kind.binary else task} |\n"
        )
        about = [markdown(sys.modules[kind.__module__].__doc__), markdown(kind.__doc__)]
        shared = [base for base in kind.__mro__ if base.__module__.startswith(f"{algorithms.__name__}._")]
        about += [f"`{base.__name__}`: {markdown(base.__doc__)}" for base in shared]
        parts.append("\n\n".join([f"\n## {name}", *about, "".join(hyper_parameters(kind))]))
    return METHODS + "".join(lines + parts)


def networks() -> str:
    """Write all networks: source, options and size of each; small pictures are resized where a network needs it."""
    page = NETWORKS
    for name in registry.names(models):
        build = registry.find(models, "network", name, "build")
        options = {key: p.default for key, p in [*inspect.signature(build).parameters.items()][2:]}
        needed = {key: 32 for key, default in options.items() if default is None}
        built = {word: build(shape, 1, **needed) for word, shape in SHAPES.items()}
        sizes = [f"{sum(w.numel() for w in made.parameters()):,} for {word}" for word, made in built.items()]
        keys = "\n".join(f"* **`{key}`**: default `{written(default)}`" for key, default in options.items())
        about = [
            markdown(sys.modules[build.__module__].__doc__),
            markdown(build.__doc__),
            *[keys] * bool(keys),
        ]
        page += "\n\n".join([f"\n## {name}", *about, f"Parameters with one output: {', '.join(sizes)}.\n"])
    return page


def sets() -> str:
    """Write all datasets: what they are, their sizes, licences, and how they are obtained."""
    accounts = (
        "\n## By hand\n\nFiles behind an account are never downloaded. Put them into `<data_dir>/raw/<name>`, or into "
        "a mirror (`fedbench doctor` names each folder):\n\n"
    )
    page = DATASETS
    for name in datasets.names(described=False):
        item = datasets.get(name)
        if name in medmnist.SETS:
            counts = " + ".join(f"{INFO[name]['n_samples'][part]:,}" for part in ("train", "val", "test"))
            about = f"{item.title}: {counts} pictures for training, validation and test (Yang et al., 2023)"
        else:
            about = item.about or title(f"{datasets.__name__}.{name}")
        facts = {key.name for key in dataclasses.fields(Dataset)}
        keys = [key.name for key in dataclasses.fields(item) if key.repr and key.name not in facts]
        values = {
            key: getattr(item, key) for key in keys if isinstance(getattr(item, key), str | int | float)
        }
        options = ", ".join(f"`{key}: {written(value)}`" for key, value in values.items() if value != "")
        way = (
            "[by hand](#by-hand)"
            if item.account
            else "downloaded"
            if item.downloads()
            else "nothing to fetch"
        )
        way += f" ([source]({item.source.split()[0]}))" * item.source.startswith("http")
        cells = f"`{name}`", about, " x ".join(map(str, item.shape)), options, item.licence, way
        page += f"| {' | '.join(cells)} |\n"
        accounts += f"* `{name}`: {item.account}\n" * bool(item.account)
    return page + accounts


def keys() -> str:
    """Write all keys of the YAML files: type, default and meaning of each."""
    lines = [KEYS]
    told = set[str]()
    for kind, (_, place) in FILES.items():
        made = described(kind)
        lines += [f"## `{place}`", "", made["description"].split("\n\n")[0].replace("``", "`"), ""]
        lines += key_lines(made)
        for name, spec in made["$defs"].items():
            if name not in told:
                told.add(name)
                about = (
                    str(spec.get("description", "")).split("\n\n")[0].replace("\n", " ").replace("``", "`")
                )
                lines += [f"### {heading(name)}", "", about, "", *key_lines(spec)]
    return "\n".join(lines)


def heading(name: str) -> str:
    """Return a model's name in words: ``part_DataSpec`` is ``Data``."""
    word = name.removeprefix("part_").removesuffix("Spec").removesuffix("Entry")
    apart = (f" {letter}" if letter.isupper() else letter for letter in word)
    return "".join(apart).strip().capitalize()


def key_lines(spec: Schema) -> list[str]:
    """Return a line for each key: its name, type, default and meaning."""
    lines = []
    for name, key in spec.get("properties", {}).items():
        facts = in_words(key)
        if name in spec.get("required", []):
            facts += ", required"
        elif isinstance(key.get("default"), str | int | float) and key["default"] != "":
            facts += f", default `{json.dumps(key['default'])}`"
        lines.append(f"* **`{name}`** ({facts}): {key.get('description', '')}".replace("\n", " "))
    return [*lines, ""]


def in_words(key: Schema) -> str:
    """Return a type in words."""
    if "$ref" in key:
        name = heading(key["$ref"].rpartition("/")[2])
        return f"[{name}](#{name.lower().replace(' ', '-')})"
    if "anyOf" in key:
        kinds = {in_words(part) for part in key["anyOf"] if part.get("type") != "null"}
        if kinds == {"`true` or `false`", "whole number", "number", "text"}:
            return "value"
        known = {kind for kind in kinds if kind.startswith("one of") and "text" in kinds}  # doctor lists them
        known |= {"whole number"} if "number" in kinds else set()
        return " or ".join(sorted(kinds - known))
    if "enum" in key:
        return "one of " + ", ".join(f"`{value}`" if value else '`""`' for value in key["enum"])
    if "const" in key:
        return f"`{key['const']}`"
    if key.get("type") == "array":
        items = re.sub(r"\b(number|value)\b", r"\1s", in_words(key["items"])) if key.get("items") else ""
        return f"list of {items}" if items else "list"
    if key.get("type") == "object":
        inner = key.get("additionalProperties")
        return f"by name: {in_words(inner)}" if isinstance(inner, dict) and inner else "keys and values"
    words = {
        "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
    }  # fmt: skip
    ends = " and ".join(f"{word} {key[name]:,.10g}" for name, word in words.items() if name in key)
    kinds_of = {
        "integer": "whole number",
        "string": "text",
        "boolean": "`true` or `false`",
        "number": "number",
    }
    return f"{kinds_of.get(str(key.get('type')), 'any value')} {ends}".strip()


PAGES = {
    "docs/reference/methods.md": methods,
    "docs/reference/networks.md": networks,
    "docs/reference/datasets.md": sets,
    "docs/reference/keys.md": keys,
}
"""What writes each page."""
