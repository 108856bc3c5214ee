"""A network as one vector of parameters, for one client or many."""

from fedbench.net.building import build_network
from fedbench.net.leaf import Leaf
from fedbench.net.network import Net

__all__ = ["Leaf", "Net", "build_network"]
