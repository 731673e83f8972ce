"""Pages about settings: tokens, clusters, gateways, the audit log and the server."""
