"""Training: learners behind one protocol, and their progress."""
