"""Network namespaces of this machine: what is in them, and the wires between them."""
