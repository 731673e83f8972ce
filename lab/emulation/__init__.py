"""Delay, jitter, loss and rate between the gateways of a lab: netem, or a queue in user space where it is missing."""
