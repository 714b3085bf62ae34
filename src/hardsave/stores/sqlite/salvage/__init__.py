"""What can still be read of a damaged file, and what is wrong with it."""
