"""Decoders for the data of device plugins on nodes and pods: HAMi, NVIDIA, Volcano and Dynamic Resource Allocation."""
