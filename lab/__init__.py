"""A lab: gateways, hosts and the network between them, in network namespaces of one machine."""
