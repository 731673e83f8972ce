"""Pages about gateways and the links between them."""
