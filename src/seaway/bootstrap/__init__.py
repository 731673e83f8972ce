"""Wiring of all parts; no other package imports them all."""
