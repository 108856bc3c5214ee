"""ExampleName: the contract of every dataset, and the facts about this one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedbench.data.prepared import load_prepared
from fedbench.testing import check_dataset


# A dataset finds its raw files in `raw/NAME` of the folder that is given: write small ones of their form into that of
# `tmp_path` first, or give the folder that holds the real ones, `Path("data")`.
def test_the_contract_of_a_dataset_holds(tmp_path: Path) -> None:
    check_dataset("example_name", tmp_path)


def test_the_sizes_of_its_parts(tmp_path: Path) -> None:
    """Hold the numbers of samples and classes against those that the source states."""
    check_dataset("example_name", tmp_path)
    data = load_prepared("example_name", tmp_path)
    assert data.x_train.shape == (800, 10) and data.x_test.shape == (200, 10)
    assert np.bincount(data.y_train).tolist() == [400, 400]
