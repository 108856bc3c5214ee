"""Federated methods, one file each; every file defines the class ``Method``."""
