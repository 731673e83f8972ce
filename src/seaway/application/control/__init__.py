"""The control loop: collect, decide, execute and observe, repeatedly."""
