"""The plain page at `/`: jobs with their state and progress, for a browser. It needs no script."""
