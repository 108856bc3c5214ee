"""The library stands on its own: it needs neither Snakemake nor torchvision."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
sys.modules |= {"snakemake": None, "torchvision": None}  # importing these now fails
import fedbench
names = [info.name for info in pkgutil.walk_packages(fedbench.__path__, "fedbench.")]
for name in names:
    importlib.import_module(name)
from fedbench.models.resnet20 import build
build((3, 32, 32), 1)
print(len(names))
"""


def test_every_module_imports_without_snakemake_and_torchvision() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
