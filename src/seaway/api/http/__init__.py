"""HTTP infrastructure shared by all resources: routes, bodies, responses, errors, limits and metrics."""
