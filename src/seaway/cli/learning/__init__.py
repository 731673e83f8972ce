"""Commands that train, evaluate and replay policies."""
