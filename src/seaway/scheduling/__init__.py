"""Decision engine: it makes a plan from a snapshot of the fleet and a queue of jobs."""
