"""Connections to API servers: kubeconfigs, credentials, and calls with timeouts."""
