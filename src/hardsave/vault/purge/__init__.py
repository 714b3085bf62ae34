"""What must be gone is gone, from every file of the store."""
