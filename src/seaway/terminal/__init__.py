"""What people see in a terminal: figures and events in words, and the live full-screen view, `seaway top`."""
