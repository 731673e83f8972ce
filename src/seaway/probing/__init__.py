"""Probing: packets, rounds, figures and their smoothing, without sockets or clocks."""
