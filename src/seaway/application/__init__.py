"""Use cases: admission, placement, execution and observation of jobs, and their records."""
