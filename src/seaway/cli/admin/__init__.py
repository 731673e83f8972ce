"""Commands that set up and administer a server, its network and its gateways."""
