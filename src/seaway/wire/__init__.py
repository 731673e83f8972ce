"""What goes over the wire: the formats that people and programs write and read, and their translation."""
