"""Episodes: sequences of decisions about the jobs of an instance, on the real engine."""
