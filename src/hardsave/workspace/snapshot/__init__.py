"""Files and directories as objects, and the differences between two snapshots."""
