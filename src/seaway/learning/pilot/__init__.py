"""Training of `pilot`, the policy of Seaway with attention over a shortlist of nodes, for fleets of any size."""
