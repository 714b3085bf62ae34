"""What happened, as people look at it: lists, graphs, one file's history, what is new."""
