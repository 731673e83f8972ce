"""Domain model of scheduling: immutable values and their rules, with the standard library only."""
