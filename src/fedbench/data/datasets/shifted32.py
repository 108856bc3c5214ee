"""Shifted points of 32 groups: one problem with a known saddle, dealt to any number of clients. Generated."""

from __future__ import annotations

from dataclasses import replace

from fedbench.data.datasets import shifted

dataset = replace(
    shifted.dataset, name="shifted32", title="Shifted points, 32 groups", shape=(33,), clients=32
)
