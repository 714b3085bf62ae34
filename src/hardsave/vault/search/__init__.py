"""Finding texts in states, names and files, by an index that is derived from the store."""
