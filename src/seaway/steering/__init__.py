"""What a gateway must have for packets to take the paths that are wanted, and how to get there: values only."""
