"""Where the numbers of some cells come from: by which code, where, on which data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedbench.data.prepared import FORM
from fedbench.results.collect import runs_of
from fedbench.results.frame import NOT_RUN
from fedbench.study.cells import Cell


def provenance(cells: Sequence[Cell]) -> dict[str, Any]:
    """Say what was trained here for cells: commits, versions, hardware, data, seconds, key of every run."""
    listed, commits, hardware, seconds = [], set(), set(), 0.0
    versions: dict[str, set[str]] = {}
    data: dict[str, set[str]] = {}
    for cell in cells:
        records = runs_of(cell).records
        entries = []
        for spec in cell.runs:
            run = records.get(spec.seed)
            made = run.provenance if run else {}
            commits.add(made.get("commit", ""))
            hardware.add(made.get("hardware", ""))
            seconds += made.get("seconds", 0.0)
            for name, version in made.get("versions", {}).items():
                versions.setdefault(name, set()).add(str(version))
            if (digest := made.get("data", "")).startswith(
                FORM
            ):  # runs of earlier versions have none, or others
                data.setdefault(cell.dataset, set()).add(digest)
            entries.append({"seed": spec.seed, "key": spec.key, "status": run.status if run else NOT_RUN})
        listed.append({"cell": cell.name, "runs": entries})
    return {
        "commits": sorted(commits - {""}),
        "versions": {name: sorted(found) for name, found in sorted(versions.items())},
        "hardware": sorted(hardware - {""}),
        "data": {name: sorted(found) for name, found in sorted(data.items())},
        "training_seconds": round(seconds, 1),
        "cells": listed,
    }
