"""Job files of other schedulers, converted to jobs."""
