"""Terminal output: values and events as text, and the live full-screen view, `seaway top`."""
