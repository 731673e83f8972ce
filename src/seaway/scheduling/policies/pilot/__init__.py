"""The kernel and the features of the learned policy `pilot`."""
