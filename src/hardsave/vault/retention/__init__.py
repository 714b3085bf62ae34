"""Which checkpoints are let go, and what a store needs once a day."""
