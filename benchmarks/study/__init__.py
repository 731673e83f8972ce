"""Reproduction of the published study of EADE-DDPG: `python -m benchmarks.study --help`."""
