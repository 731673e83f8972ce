"""What a gateway has to have for packets to take the paths that are wanted, and how to get there: values only."""
