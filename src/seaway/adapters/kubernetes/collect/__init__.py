"""What is in a cluster, kept up to date: listed once, then watched."""
