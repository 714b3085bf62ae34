"""What may have changed in a workspace, as the kernel tells it."""
