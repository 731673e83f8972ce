"""Kubernetes objects with the fields that Seaway reads, and their decoding."""
