"""What lies in a workspace now, and which files have to be read."""
