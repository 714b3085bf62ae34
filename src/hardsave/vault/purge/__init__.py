"""What must be gone is gone, from every file of the store."""

REPLACEMENT = "[purged]"
"""What stands in the place of a text."""
