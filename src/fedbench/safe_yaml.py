"""YAML from outside: plain values, no key twice, no number that YAML 1.2 takes for text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from fedbench import files
from fedbench.errors import UserError, shortened

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, where PyYAML has it: ten times faster
NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+"),
    "tag:yaml.org,2002:float": re.compile(r"[^_:]+"),
}
"""What is a number in YAML 1.2 too: 1_000, 1:30, 010 and 0b1 are numbers in YAML 1.1 alone."""


def read_yaml(path: Path) -> Any:
    """Read a YAML file; a missing or broken one is a :class:`UserError` naming it.

    Raises:
        ReadError: it cannot be read now.
    """
    try:
        return parse_yaml(files.read(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist; `fedbench init` copies the configuration into this folder"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not valid YAML: it must be UTF-8") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid YAML: {error}") from None


def parse_yaml(text: str) -> Any:
    """Return what a YAML document holds.

    Raises:
        ValueError: it is none, has a key twice or an odd number; the message is one short line.
    """
    try:
        return _construct(text)
    except (yaml.YAMLError, ValueError, OverflowError, TypeError) as error:
        raise ValueError(shortened(" ".join(str(error).split()))) from None


def _construct(text: str) -> Any:
    loader = LOADER(text)
    try:
        if (node := loader.get_single_node()) is None:
            return None
        _check_nodes(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_nodes(root: yaml.Node) -> None:
    """Refuse a mapping that has a key twice (libraries keep the last one) and what is a number in YAML 1.1 alone."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # what an alias stands for
            continue
        seen.add(id(node))
        if node.tag in NUMBERS and not NUMBERS[node.tag].fullmatch(node.value):
            raise ValueError(f"line {node.start_mark.line + 1}: {node.value} is no number in YAML 1.2")
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = set[tuple[str, str]]()
            for key, value in node.value:
                name = key.tag, str(key.value)
                if isinstance(key, yaml.ScalarNode) and name in keys:
                    raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} appears a second time")
                keys.add(name)
                waiting += [key, value]
