"""Adapters of the ports: one package or module per technology, independent of each other."""
