"""The name under which streams were documented first; they live in :mod:`fedbench.streams`."""

from fedbench.streams import stream

__all__ = ["stream"]
