"""Where the shipped configuration is, and changes of the toy paper."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from toy import PAPER, write_yaml

CONFIG = Path(__file__).parents[3] / "config"


def rewrite(**parts: Any) -> None:
    """Change parts of the toy paper; a part that is a function gets a copy to change."""
    paper = copy.deepcopy(PAPER)
    for name, part in parts.items():
        if callable(part):
            part(paper.setdefault(name, []))
        else:
            paper[name] = part
    write_yaml(Path("config/papers/toy.yaml"), paper)
