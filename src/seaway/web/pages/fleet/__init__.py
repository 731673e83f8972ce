"""Pages about the fleet: overview, clusters, nodes and devices."""
