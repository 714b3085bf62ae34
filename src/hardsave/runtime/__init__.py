"""Agents at work: what they are, how they are kept, how several of them run."""
