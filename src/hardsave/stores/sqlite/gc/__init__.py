"""Maintenance: merging packs, removing what no checkpoint leads to, giving room back."""
