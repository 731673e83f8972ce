"""The published study of EADE-DDPG, done again: `python -m benchmarks.study --help`."""
