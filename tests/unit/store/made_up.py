"""A made-up run for a store."""

from __future__ import annotations

from fedbench.spec import digest
from fedbench.store.record import Record
from fedbench.store.runs import Store


def add(store: Store, seed: int, auc: float = 0.5, curve: float = 0.5) -> str:
    """Put a run into a store that ends with ``auc``, and whose curve says ``curve``; return its key."""
    spec = {"method": "coda", "data": {"dataset": "digits"}, "seed": seed}
    key = digest(spec)
    with store.claim(key):
        record = Record(key, spec, "finished", "", {"test_auc": auc}, {"commit": "abc"}, {})
        store.finish(
            record, [{"round": 0, "test_auc": curve}], [{"round": 0, "quantity": "dual", "client0": 1.0}]
        )
    return key
