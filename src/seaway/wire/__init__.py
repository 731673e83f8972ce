"""Formats of the REST API and of files, and their conversion."""
