"""Opening the file: checking it, which processes have it, reading one that cannot be written."""
