"""Reaching API servers: which there are, who Seaway is there, and calls that end."""
