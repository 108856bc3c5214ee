"""A network as one vector of parameters, for one client or many."""

from fedbench.net.leaf import Leaf
from fedbench.net.network import Net, build_network

__all__ = ["Leaf", "Net", "build_network"]
