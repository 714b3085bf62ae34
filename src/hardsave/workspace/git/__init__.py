"""A git repository read as data: git itself is never run."""
