"""REST API: translation of HTTP requests to use cases, without business logic."""
