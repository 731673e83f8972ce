"""Adapters for Kubernetes clusters, GPU-sharing device plugins and Karmada. See ADR 12."""
