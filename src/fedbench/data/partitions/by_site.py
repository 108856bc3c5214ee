"""by_site: every site of the data (a hospital, a clinic) is a client."""

from __future__ import annotations

from functools import partial

from fedbench.data.partitions import client_each

partition = partial(client_each, owner="site")
