"""Directories to objects and back, safely. Knows no timelines: a snapshot is a root hash."""
