"""HTTP infrastructure of all resources: routes, bodies, responses, errors, limits and metrics."""
