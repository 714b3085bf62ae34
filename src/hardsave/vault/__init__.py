"""The front door: an opened store with its timelines."""
