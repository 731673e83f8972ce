"""What is learned on: fleets with jobs, read from files or drawn."""
