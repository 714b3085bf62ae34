"""Agents as people run them already: their hooks, their transcripts, and the way back into them."""
