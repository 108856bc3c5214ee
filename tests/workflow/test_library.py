"""The library needs neither Snakemake nor torchvision, and its import neither torch nor pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest

EACH_MODULE = """
import importlib, pkgutil, sys
sys.modules |= {"snakemake": None, "torchvision": None}  # importing these now fails
import fedbench
names = [info.name for info in pkgutil.walk_packages(fedbench.__path__, "fedbench.")]
for name in names:
    importlib.import_module(name)
from fedbench.models.resnet20 import build
build((3, 32, 32), 1)
assert len(names) > 20
"""
ALONE = "import fedbench, sys; assert not {'torch', 'pandas'} & set(sys.modules)"


@pytest.mark.parametrize("program", [EACH_MODULE, ALONE], ids=["each module", "alone"])
def test_it_imports_without(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
