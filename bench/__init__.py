"""Benchmarks: ours, our peers and the floors, side by side in one run. `make bench` runs them."""
