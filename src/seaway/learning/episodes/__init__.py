"""Episodes: a pass of an instance's jobs through its fleet on the real engine, one decision at a time."""
