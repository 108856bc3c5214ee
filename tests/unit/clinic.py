"""A table of one's own as the only dataset of the toy paper."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from toy import PAPER, write_yaml

from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan

BY_SITE: dict[str, Any] = {"clients": "sites", "partition": {"rule": "by_site"}}
AS_IT_IS: dict[str, Any] = {"labels": {"rule": "original"}, "imbalance": {"rule": "none"}}
"""Keys of ``data``: hospitals are clients; labels and their shares are those of the file."""


def write_clinic(described: str, table: dict[str, Any], data: dict[str, Any], **entry: Any) -> dict[str, Any]:
    """Write the YAML of a dataset, and the toy paper with it and changes of its first table; return the paper."""
    Path("config/datasets").mkdir(exist_ok=True)
    Path("config/datasets/clinic.yaml").write_text(described)
    paper = copy.deepcopy(PAPER)
    network = {"name": "mlp", "options": {"hidden": [4]}}
    paper["datasets"] = {"Digits": {"data": {"dataset": "clinic", **data}, "network": network, **entry}}
    paper["tables"]["table1"] |= {"datasets": ["Digits"], **table}
    del paper["figures"]
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return paper


def cells() -> list[Cell]:
    """The cells of its first table."""
    return Plan(load_config(), "toy").cells("table1")
