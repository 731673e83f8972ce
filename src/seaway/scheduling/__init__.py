"""The decision engine: a snapshot of the fleet and a queue of jobs in, a plan out."""
