"""Which files are ignored: git's rules, over plain data."""
