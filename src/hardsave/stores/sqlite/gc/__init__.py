"""Maintenance: merging packs, removing what no checkpoint leads to, vacuum."""
