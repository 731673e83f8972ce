"""Work spread over processes, and over machines: the same code, and the same results, whatever does it."""
