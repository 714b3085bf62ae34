"""The list to choose a checkpoint from, for `hardsave rewind` without a REF."""
