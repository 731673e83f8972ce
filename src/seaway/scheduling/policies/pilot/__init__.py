"""Kernel and features of the learned policy `pilot`."""
