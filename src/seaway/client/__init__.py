"""The Python client: one description of the calls, and two ways to make them."""
