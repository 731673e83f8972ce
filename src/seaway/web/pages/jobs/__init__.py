"""Pages about jobs: list, submit form, and one job with its tabs."""
