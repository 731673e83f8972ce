"""Training: what learns, behind one protocol, and what it tells on the way."""
