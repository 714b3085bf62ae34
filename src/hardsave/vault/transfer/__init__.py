"""Timelines carried to another store: export and import."""
