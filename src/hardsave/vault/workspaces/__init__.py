"""The directories of a vault: which of them a path is, their locks, and how they move."""
