"""Values as content-addressed objects. Pure: no I/O, no clock, no randomness."""
