"""Learning to place: instances and episodes to learn on, agents that learn, policies that run."""
