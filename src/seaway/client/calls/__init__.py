"""Calls of the API, shared by both clients and the command line."""
