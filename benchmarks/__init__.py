"""Timed and quality cases: `script/bench --help` lists them."""
