"""HTTP plumbing that every resource of the API shares: routes, bodies, replies, errors, limits and metrics."""
