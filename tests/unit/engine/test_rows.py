"""Rows read and written are those that indexing would read and write, short or long."""

from __future__ import annotations

import pytest
import torch

from fedbench.engine import rows


@pytest.mark.parametrize("shape", [(), (3,), (rows.LONG,), (2, rows.LONG)])
def test_rows_are_those_of_indexing(shape: tuple[int, ...]) -> None:
    tensor, values = torch.rand(5, *shape), torch.rand(2, *shape)
    taken = rows.take(tensor, [3, 1])
    assert torch.equal(taken, tensor[[3, 1]])
    expected = tensor.clone()
    expected[[4, 0]] = values
    rows.put(tensor, [4, 0], values)
    assert torch.equal(tensor, expected)
    before = tensor.clone()
    taken.zero_()
    assert torch.equal(tensor, before), "what was taken is a copy"
    with pytest.raises((ValueError, RuntimeError, IndexError)):
        rows.put(tensor, [0, 1, 2], values)
