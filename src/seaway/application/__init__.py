"""Use cases: admission, placement, execution and observation of jobs, and the records of all this."""
