"""by_group: every group of the data (a state, a hospital) is a client (cycp's Insurance: one client a state)."""

from __future__ import annotations

from functools import partial

from fedbench.data.partitions import client_each

partition = partial(client_each, owner="group")
