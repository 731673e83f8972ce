"""The most jobs that a fleet can hold at once when all are known beforehand: a teacher, and a yardstick."""
