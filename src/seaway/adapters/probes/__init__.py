"""Probes over real sockets: ICMP and ICMPv6, UDP and its reflector, TCP connections. Linux only."""
