"""What is installed, which datasets are there, which device will be used, how much disk is free."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from fedbench import __version__, algorithms, models, registry, tasks
from fedbench.data import datasets, partitions
from fedbench.errors import UserError
from fedbench.store.provenance import package_version
from fedbench.store.runs import Store
from fedbench.study.schema import Config
from fedbench.train.training import choose_device


def report(config: Config, folder: Path) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"fedbench {__version__}, Python {platform.python_version()}"
    for name in ("torch", "torchvision", "scikit-learn", "snakemake"):
        installed = importlib.util.find_spec({"scikit-learn": "sklearn"}.get(name, name)) is not None
        yield f"  {name:14} {package_version(name) if installed else 'not installed'}"
    yield f"  {'latexmk':14} {shutil.which('latexmk') or 'not installed: tables are built without PDFs'}"
    device = choose_device(config.device)
    yield f"device: {device.type} (config: {config.device})"
    yield f"disk: {shutil.disk_usage(folder).free / 1e9:.0f} GB free in {folder}"
    yield f"run store: {len(Store().keys())} finished runs in {Store().root}"
    kinds = {"methods": algorithms, "tasks": tasks, "networks": models, "partition rules": partitions}
    for kind, package in kinds.items():
        origins = registry.origins(package)
        known = [
            f"{name} (of {origins[name]})" if name in origins else name for name in registry.names(package)
        ]
        yield f"{kind}: {', '.join(known)}"
    yield f"datasets in {config.data_dir} (mirror: {config.mirror or 'none'}):"
    origins = registry.origins(datasets)
    for name in datasets.names():
        try:
            status = datasets.get(name).status(Path(config.data_dir), config.mirror)
            said = f"{status.state}: {status.detail}"
        except Exception as error:  # a user's code: one that is broken hides no other
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            said = f"broken: {kind}{error}"
        yield f"  {name:14} {said}" + (f" (of {origins[name]})" if name in origins else "")
