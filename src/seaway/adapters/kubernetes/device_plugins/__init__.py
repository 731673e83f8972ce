"""Decoders of what device plugins write on nodes and pods: HAMi, NVIDIA, Volcano and Dynamic Resource Allocation."""
