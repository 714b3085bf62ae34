"""The agent CLIs that we know: their hooks, their settings, their transcripts."""
