"""Probing of links: packets, rounds, measurements and their smoothing, without sockets or clocks."""
