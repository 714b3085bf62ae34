"""`hardsave store …`: the store as a whole."""
