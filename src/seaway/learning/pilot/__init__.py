"""The learned policy of Seaway: attention over a shortlist of nodes, for fleets of any size."""
