"""How true it is what agents say of links: measured in a lab, against what its emulator did and what a capture saw."""
