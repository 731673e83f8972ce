"""The REST interface: HTTP in, use cases out. Decides nothing itself."""
