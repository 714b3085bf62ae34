"""One commit: lock, transaction, what it adds and changes."""
