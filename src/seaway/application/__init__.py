"""Use cases: taking jobs in, placing them, carrying that out, watching them, and what all of it is kept in."""
