"""Benchmarks of time and quality; `script/bench --help` lists the cases."""
