"""``train.precision``: products of bfloat16 in training alone, and a key that is older where it is not asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from world import images, simulate, spec

NETWORKS = {"mlp": ("mlp", {"hidden": [5]}), "norm": ("resnet20", {"blocks": 1})}


def test_the_key_names_a_precision_that_is_not_the_default() -> None:
    plain = spec()
    assert spec(precision="float32").key == plain.key and "precision" not in str(plain.model_dump())
    assert len({plain.key, spec(precision="tf32").key, spec(precision="bf16").key}) == 3


@pytest.mark.parametrize("method", ["local_sgdm", "local_scgdam"])
@pytest.mark.parametrize("chunk", [1, None], ids=["alone", "stacked"])
@pytest.mark.parametrize("network", NETWORKS)
def test_bf16_rounds_training_and_no_evaluation(network: str, chunk: int | None, method: str) -> None:
    name, options = NETWORKS[network]
    how: dict[str, Any] = {"network": name, "options": options, "rounds": 1, "period": 2, "evaluations": 1}
    (full, expected), (rounded, result) = (
        simulate(spec(method, **how, precision=precision), images(side=8), chunk)
        for precision in ("float32", "bf16")
    )
    assert (
        result.curve[0].items()
        >= {k: v for k, v in expected.curve[0].items() if k.startswith("test_")}.items()
    )
    begun = full.problem.net.initial()
    x, y = (run.server["x"][: len(begun)] for run in (full, rounded))
    assert y.dtype == torch.float32 and not torch.equal(x, y)
    moved = (x - begun).norm()
    assert 0 < (x - y).norm() < 0.5 * moved
