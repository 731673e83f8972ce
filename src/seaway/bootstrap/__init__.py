"""Wiring: the only place that knows every part."""
