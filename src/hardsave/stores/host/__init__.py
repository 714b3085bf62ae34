"""This machine: its boot, its clock, its processes."""
