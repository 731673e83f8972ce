"""Benchmarks of the cost and the accuracy of probing: a full mesh of gateways on one machine."""
