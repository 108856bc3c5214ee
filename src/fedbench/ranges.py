"""Where hyper-parameters may lie, by the names that methods share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fedbench.errors import UserError

ABOVE_0 = ("tau", "epsilon", "margin", "slope")
FROM_0 = (
    "lr", "lr_dual", "dual_lr", "server_lr", "mu", "alpha", "rho", "proximal", "tolerance", "gamma", "dual_max",
    "temperature", "ratio_alpha", "ratio_beta", "ratio_max", "ratio_undefined",
    "restart_samples",
)  # fmt: skip
SHARES = ("beta", "beta_in", "beta_x", "beta_y", "alpha_h", "dominance")
"""From 0 to 1: weights of a running mean, mostly."""
MOMENTA = ("momentum", "beta1", "beta2", "beta_1", "beta_2")
"""From 0 to less than 1: at 1 nothing is ever forgotten, and a step has no bound."""
COUNTS = ("dual_every", "n_aux", "renew_every", "passive", "opening")


def at_bound(name: str, value: float) -> bool:
    """Return whether nothing lies beyond a value: 0 for all hyper-parameters, and 1 for a share."""
    return value == 0 or (name in SHARES and value == 1)


def check(label: str, values: Mapping[str, Any]) -> None:
    """Refuse hyper-parameters that are no finite numbers or out of their range; names not listed here may be any.

    Raises:
        UserError: one is; ``label`` names the method.
    """
    for name, value in values.items():
        if isinstance(value, str):
            continue
        if not math.isfinite(value):
            raise UserError(f"{label}: {name} has to be a finite number, not {value}")
        for names, within, words in (
            (ABOVE_0, value > 0, "above 0"),
            (FROM_0, value >= 0, "0 or more"),
            (SHARES, 0 <= value <= 1, "from 0 to 1"),
            (MOMENTA, 0 <= value < 1, "from 0 to less than 1"),
            (COUNTS, value >= 1, "1 or more"),
        ):
            if name in names and not within:
                raise UserError(f"{label}: {name} has to be {words}, not {value}")
