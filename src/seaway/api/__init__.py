"""REST API: translation of HTTP requests to use cases, without decisions of its own."""
