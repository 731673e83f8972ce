"""The control loop: collect, decide, execute, observe, over and over."""
