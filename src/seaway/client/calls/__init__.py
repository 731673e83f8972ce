"""Every call of the API, described once for both clients and the command line."""
