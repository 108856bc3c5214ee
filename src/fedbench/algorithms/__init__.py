"""Federated methods, one file each, which defines the class ``Method``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from fedbench import registry
from fedbench.method import FederatedMethod


def make_method(name: str, params: Mapping[str, Any]) -> FederatedMethod:
    """Build the method in ``algorithms/<name>.py`` from its hyper-parameters.

    Raises:
        UserError: unknown method, or hyper-parameters that are missing, misspelt, of a wrong kind or out of range.
    """
    method = registry.find(sys.modules[__name__], "method", name, "Method")
    return registry.filled(method, FederatedMethod, f"method {name!r}", "hyper-parameter", params)
