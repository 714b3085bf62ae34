"""Reading everything once, to know that it can be read."""
