"""Python client: call descriptions, and a synchronous and an asynchronous client that make them."""
