"""A repository brought back to a stored position, without running git."""
