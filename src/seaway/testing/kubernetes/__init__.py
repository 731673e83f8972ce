"""A Kubernetes and Karmada API server in memory, for tests and benchmarks, behind real HTTP on loopback."""

from seaway.testing.kubernetes.server import ApiServer

__all__ = ["ApiServer"]
