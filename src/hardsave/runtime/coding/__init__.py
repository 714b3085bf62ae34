"""Tools for an agent that codes: files beneath a directory, and a shell in it."""
