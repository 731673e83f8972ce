"""Default policy `seaway`: place where the value of the remaining capacity drops least."""
