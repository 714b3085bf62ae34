"""Putting checkpoints on a timeline: the request, the capture, the batch."""
