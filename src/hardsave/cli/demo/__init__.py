"""`hardsave demo`: agents that are really killed, and go on."""
