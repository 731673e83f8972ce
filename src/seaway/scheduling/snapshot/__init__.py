"""The fleet as arrays: a snapshot of nodes, devices and links, and what is free on them."""
