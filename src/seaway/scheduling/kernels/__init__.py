"""Compiled functions: plain arrays in, plain arrays out, nothing allocated in the inner loops."""
