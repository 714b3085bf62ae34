"""From one snapshot to another on the disk: the plan, and its steps."""
