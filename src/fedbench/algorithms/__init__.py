"""Federated methods, one file each; every file defines the class ``Method``."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from fedbench import ranges, registry
from fedbench.contract.method import FederatedMethod


def make(name: str, params: Mapping[str, Any]) -> FederatedMethod:
    """Build the method in ``algorithms/<name>.py`` from its hyper-parameters.

    Raises:
        UserError: unknown method, or hyper-parameters that are missing, misspelt of a wrong kind or out of range.
    """
    found, label = registry.find(sys.modules[__name__], "method", name, "Method"), f"method {name!r}"
    method = registry.filled(found, FederatedMethod, label, "hyper-parameter", params)
    fields = dataclasses.fields(method)  # type: ignore[arg-type]
    ranges.check(label, {field.name: getattr(method, field.name) for field in fields})
    return method
