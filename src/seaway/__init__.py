"""Seaway schedules GPU work across many Kubernetes clusters and the network between them."""

__version__ = "0.1.0"
