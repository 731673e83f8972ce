"""Wiring of all components; no other package imports them all."""
