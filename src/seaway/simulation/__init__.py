"""Virtual clusters, trace replay and workload generators."""
