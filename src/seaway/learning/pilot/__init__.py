"""Our own learned policy: attention over a shortlist of nodes, which fits fleets of any size."""
